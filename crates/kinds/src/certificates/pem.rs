//! PEM as Go's `encoding/pem` reads it: text around blocks and broken blocks are skipped.

use base64::Engine as _;
use base64::engine::general_purpose::{GeneralPurpose, PAD};

pub struct Block {
    /// The words after `BEGIN`, such as `CERTIFICATE`.
    pub label: String,
    pub has_headers: bool,
    /// The decoded content.
    pub bytes: Vec<u8>,
}

const BEGIN: &str = "-----BEGIN ";
const END: &str = "\n-----END ";
const DASHES: &str = "-----";
/// Base64 whose last digit may have bits beyond the content.
const LENIENT: GeneralPurpose =
    GeneralPurpose::new(&base64::alphabet::STANDARD, PAD.with_decode_allow_trailing_bits(true));

/// The blocks of a text. The time is linear in its length.
pub fn blocks(text: &[u8]) -> Vec<Block> {
    let text = String::from_utf8_lossy(text);
    let (mut rest, mut found) = (&*text, vec![]);
    while let Some(end) = rest.find(END) {
        let (before, after) = (&rest[..end + 1], &rest[end + END.len()..]);
        rest = after;
        let Some(begin) = before.rfind(BEGIN).filter(|begin| *begin == 0 || before[..*begin].ends_with('\n')) else {
            continue;
        };
        if let Some(block) = block(&before[begin + BEGIN.len()..], after) {
            found.push(block);
        }
    }
    found
}

/// The block of the text from its label to its end; `after` follows the beginning of the end line.
fn block(text: &str, after: &str) -> Option<Block> {
    let (line, mut body) = text.split_once('\n')?;
    let label = line.trim_end().strip_suffix(DASHES)?;
    let end_line = after.split('\n').next()?;
    if !end_line.strip_prefix(label)?.strip_prefix(DASHES)?.trim_end().is_empty() {
        return None;
    }
    let mut has_headers = false;
    while let Some((_, rest)) = body.split_once('\n').filter(|(line, _)| line.contains(':')) {
        (has_headers, body) = (true, rest);
    }
    let digits: Vec<u8> = body.bytes().filter(|byte| !matches!(byte, b' ' | b'\t' | b'\r' | b'\n')).collect();
    Some(Block { label: label.to_owned(), has_headers, bytes: LENIENT.decode(digits).ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_a_text() {
        type Found<'a> = (&'a str, bool, &'a [u8]);
        let cases: [(&str, &[Found<'_>]); 8] = [
            ("", &[]),
            ("-----BEGIN A-----\nYR==\n-----END A-----\n", &[("A", false, b"a")]),
            ("-----BEGIN A-----\nYQ==\n-----END A-----\n", &[("A", false, b"a")]),
            (
                "x\n-----BEGIN A-----\r\nYW\r\nI=\r\n-----END A-----\ny\n-----BEGIN B C-----\n-----END B C-----",
                &[("A", false, b"ab"), ("B C", false, b"")],
            ),
            ("-----BEGIN A-----\nk: v\n\nYQ==\n-----END A-----", &[("A", true, b"a")]),
            (
                "-----BEGIN A-----\nYQ==\n-----END B-----\n-----BEGIN A-----\nYg==\n-----END A-----",
                &[("A", false, b"b")],
            ),
            ("-----BEGIN A-----\n-----BEGIN A-----\nYQ==\n-----END A-----", &[("A", false, b"a")]),
            ("x-----BEGIN A-----\nYQ==\n-----END A-----\n-----BEGIN A-----\n!\n-----END A-----", &[]),
        ];
        for (text, want) in cases {
            let found = blocks(text.as_bytes());
            let found: Vec<_> = found.iter().map(|block| (&*block.label, block.has_headers, &*block.bytes)).collect();
            assert_eq!(found, want, "{text}");
        }
    }
}
