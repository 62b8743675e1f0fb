//! Continue tokens: `{"v":"meta.k8s.io/v1","rv":N,"start":"key\u0000"}` in base64url without padding (api-machinery 11.5).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use machinery::{Status, Value, value};

/// Where a list goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Continue {
    /// The revision of the first page; -1 to go on with the newest state.
    pub revision: i64,
    /// The path after which the next page starts.
    pub after: String,
}

/// Go's decoder does not look at the bits behind the last byte.
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
        let token: Value = [
            ("v", Value::from("meta.k8s.io/v1")),
            ("rv", Value::Int(self.revision)),
            ("start", Value::from(format!("{}\0", self.after))),
        ]
        .into();
        URL_SAFE_NO_PAD.encode(token.to_json())
    }

    pub fn decode(token: &str) -> Result<Continue, Status> {
        let bytes = LENIENT.decode(token.trim_end_matches('=')).map_err(|_| invalid(&base64_error(token)))?;
        let token = value::decode(&bytes).map_err(|error| invalid(&error.message))?;
        let version = token.str_at(&["v"]);
        if version != "meta.k8s.io/v1" {
            return Err(invalid(&format!("server does not recognize this encoded version {version}")));
        }
        let revision = token.get("rv").and_then(Value::as_int).unwrap_or_default();
        if revision == 0 {
            return Err(invalid("incorrect encoded start resourceVersion (version meta.k8s.io/v1)"));
        }
        let start = token.str_at(&["start"]);
        if start.is_empty() {
            return Err(invalid("encoded start key empty (version meta.k8s.io/v1)"));
        }
        if start.split('/').any(|part| part == "..") {
            return Err(invalid(start));
        }
        Ok(Continue { revision, after: start.trim_end_matches('\0').to_owned() })
    }
}

/// Go's decoder names the byte where base64 ends.
fn base64_error(token: &str) -> String {
    let legal = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    // one character alone says nothing: where it stands is told
    let end = if token.len() % 4 == 1 { token.len() - 1 } else { token.len() };
    let at = token.bytes().position(|b| !legal(b)).unwrap_or(end);
    format!("illegal base64 data at input byte {at}")
}
