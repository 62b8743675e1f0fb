//! The header Warning (RFC 7234).

use http::HeaderMap;

use crate::verbs::Request;

pub(super) fn add_warnings(request: &Request, headers: &mut HeaderMap) {
    append_warnings(&request.warnings.texts(), headers);
}

/// Puts warnings before those that a response has.
pub(super) fn prepend_warnings(warnings: &[&str], headers: &mut HeaderMap) {
    if warnings.is_empty() {
        return;
    }
    let later: Vec<_> = headers.get_all("warning").iter().cloned().collect();
    headers.remove("warning");
    append_warnings(warnings, headers);
    for warning in later {
        headers.append("warning", warning);
    }
}

pub(super) fn append_warnings<T: AsRef<str>>(warnings: &[T], headers: &mut HeaderMap) {
    for warning in warnings {
        let escaped = warning.as_ref().replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = http::HeaderValue::from_bytes(format!("299 - \"{escaped}\"").as_bytes()) {
            headers.append("warning", value);
        }
    }
}
