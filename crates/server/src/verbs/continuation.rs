//! Continue tokens: `{"v":"meta.k8s.io/v1","rv":N,"start":"key\u0000"}` in base64url without padding.

use base::wording;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use machinery::{Result, Status, Value, value};

/// The position from which a list continues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Continue {
    /// The revision of the first page; -1 to continue in the current state.
    pub revision: i64,
    /// The key after which the next page starts, relative to the scope of the list: `/name`, or `/namespace/name`.
    pub after: String,
}

/// Like Go's decoder, accepts any trailing bits after the last byte.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::URL_SAFE,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(base64::engine::DecodePaddingMode::RequireNone),
);

fn invalid(why: &str) -> Status {
    Status::bad_request(format!("invalid continue token: continue key is not valid: {why}"))
}

impl Continue {
    pub fn encode(&self) -> String {
        let start = Value::from(format!("{}\0", self.after)).to_json();
        URL_SAFE_NO_PAD.encode(format!("{{\"v\":\"meta.k8s.io/v1\",\"rv\":{},\"start\":{start}}}", self.revision))
    }

    /// The position after `path` in a list of a namespace, or in a list of all namespaces if `namespace` is empty.
    pub fn new(revision: i64, namespace: &str, path: &str) -> Continue {
        let after = path.strip_prefix(namespace).unwrap_or(path).trim_start_matches('/');
        Continue { revision, after: format!("/{after}") }
    }

    /// The path of the position in a list of this namespace, or of all namespaces if `namespace` is empty.
    pub fn path_in(&self, namespace: &str) -> String {
        format!("{namespace}{}", self.after).trim_start_matches('/').to_owned()
    }

    pub fn decode(token: &str) -> Result<Continue> {
        let bytes = LENIENT.decode(token.trim_end_matches('=')).map_err(|_| invalid(&base64_error(token)))?;
        let token = value::decode(&bytes).map_err(|error| invalid(&wording::json_error(&error)))?;
        let version = token.str_at(&["v"]);
        if version != "meta.k8s.io/v1" {
            return Err(invalid(&format!("server does not recognize this encoded version {version}")));
        }
        let revision = token.int_at(&["rv"]);
        if revision == 0 {
            return Err(invalid("incorrect encoded start resourceVersion (version meta.k8s.io/v1)"));
        }
        let start = token.str_at(&["start"]);
        if start.is_empty() {
            return Err(invalid("encoded start key empty (version meta.k8s.io/v1)"));
        }
        let parts = start.strip_prefix('/').unwrap_or(start);
        if parts.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Err(invalid(start));
        }
        Ok(Continue { revision, after: format!("/{}", parts.trim_end_matches('\0')) })
    }
}

/// The error of Go's decoder, which names the position of the first invalid byte.
fn base64_error(token: &str) -> String {
    let legal = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    // a single character after the last group of four encodes no byte, so the error is at its position
    let end = if token.len() % 4 == 1 { token.len() - 1 } else { token.len() };
    let at = token.bytes().position(|b| !legal(b)).unwrap_or(end);
    format!("illegal base64 data at input byte {at}")
}
