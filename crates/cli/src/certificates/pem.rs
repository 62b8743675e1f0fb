//! The textual form of keys and certificates.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Characters of a line.
const LINE: usize = 64;

/// A PEM block (RFC 7468) with this label, such as `CERTIFICATE`.
pub fn encode(label: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let lines: Vec<&str> = (0..text.len()).step_by(LINE).map(|at| &text[at..text.len().min(at + LINE)]).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}
