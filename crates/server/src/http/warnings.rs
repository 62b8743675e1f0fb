//! The `Warning` header (RFC 7234, section 5.5), as defined by KEP-1693.

use http::HeaderMap;

use crate::verbs::Request;

pub(super) fn add_warnings(request: &Request, headers: &mut HeaderMap) {
    append_warnings(&request.warnings.texts(), headers);
}

/// Inserts warnings before those that the response already has.
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

/// Appends warnings with code 299. A warning that is not a valid header value is dropped.
pub(super) fn append_warnings<T: AsRef<str>>(warnings: &[T], headers: &mut HeaderMap) {
    for warning in warnings {
        let escaped = warning.as_ref().replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = http::HeaderValue::from_bytes(format!("299 - \"{escaped}\"").as_bytes()) {
            headers.append("warning", value);
        }
    }
}
