//! Lists in rules of webhooks, policies, roles and flow schemas.

use machinery::Text;

/// Returns whether a list has `text`, or `*`, which stands for every text.
pub(crate) fn has_or_all(list: &[Text], text: &str) -> bool {
    list.iter().any(|item| item == text || item == "*")
}
