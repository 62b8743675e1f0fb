//! Verdicts: what the server responds to a request.

use bytes::Bytes;
use http_body_util::BodyExt as _;
use machinery::{Status, Value, value};

/// The response of the server.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// The body of a success, or the Status of an error.
    pub outcome: Result<Bytes, Status>,
    /// The texts of the response's warnings.
    pub warnings: Vec<String>,
}

impl Verdict {
    pub(super) fn refused(status: Status) -> Verdict {
        Verdict { outcome: Err(status), warnings: vec![] }
    }

    pub async fn read(response: http::Response<server::Body>) -> Verdict {
        let (parts, body) = response.into_parts();
        let warnings = parts.headers.get_all("warning").iter();
        let warnings = warnings.filter_map(|value| warning_text(&String::from_utf8_lossy(value.as_bytes()))).collect();
        let bytes = match body.collect().await {
            Ok(collected) => collected.to_bytes(),
            Err(error) => return Verdict::refused(Status::internal(error.to_string())),
        };
        let outcome = if parts.status.is_success() {
            Ok(bytes)
        } else {
            let status = value::decode(&bytes).ok().filter(|status| status.str_at(&["kind"]) == "Status");
            let code = parts.status.as_u16();
            let plain = || Status::untyped(code, String::from_utf8_lossy(&bytes).trim_end());
            Err(status.as_ref().map_or_else(plain, Status::from_value))
        };
        Verdict { outcome, warnings }
    }

    pub fn is_good(&self) -> bool {
        self.outcome.is_ok()
    }

    /// The object of a success; the Status otherwise.
    pub fn object(&self) -> Result<Value, Status> {
        let bytes = self.outcome.as_ref().map_err(Status::clone)?;
        value::decode(bytes).map_err(|error| Status::internal(error.to_string()))
    }

    /// The HTTP status code and the message of an error; `None` for a success.
    pub fn error(&self) -> Option<(u16, &str)> {
        self.outcome.as_ref().err().map(|status| (status.code, status.message.as_str()))
    }
}

pub fn warning_text(header: &str) -> Option<String> {
    let quoted = header.strip_prefix("299 - \"")?.strip_suffix('"')?;
    let mut text = String::with_capacity(quoted.len());
    let mut letters = quoted.chars();
    while let Some(letter) = letters.next() {
        text.push(if letter == '\\' { letters.next()? } else { letter });
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_unquoted() {
        for (header, text) in [
            (r#"299 - "unknown field \"a\"""#, Some(r#"unknown field "a""#)),
            (r#"299 - "a\\b""#, Some(r"a\b")),
            (r#"299 - "a"#, None),
            ("214 - \"a\"", None),
        ] {
            assert_eq!(warning_text(header).as_deref(), text, "{header}");
        }
    }
}
