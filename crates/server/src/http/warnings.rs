//! The header Warning (RFC 7234; api-machinery 1.4).

use http::HeaderMap;

use crate::limits;
use crate::verbs::Request;

pub(super) fn add_warnings(request: &Request, headers: &mut HeaderMap) {
    let warnings = request.warnings.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    append_warnings(&warnings, headers);
}

/// Puts warnings before those that an answer has.
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
    let warnings: Vec<&str> = warnings.iter().map(AsRef::as_ref).collect();
    let runes: usize = warnings.iter().map(|w| w.chars().count()).sum();
    let mut left = limits::WARNING_RUNES_MAX;
    for warning in warnings.iter() {
        let cut: String = match runes > limits::WARNING_RUNES_MAX {
            true => warning.chars().take(limits::WARNING_RUNES_EACH).collect(),
            false => (*warning).to_owned(),
        };
        let count = cut.chars().count();
        if count > left {
            break;
        }
        left -= count;
        if cut.chars().any(char::is_control) {
            continue;
        }
        let escaped = cut.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = http::HeaderValue::from_bytes(format!("299 - \"{escaped}\"").as_bytes()) {
            headers.append("warning", value);
        }
    }
}
