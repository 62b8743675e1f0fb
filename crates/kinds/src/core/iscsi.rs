//! iSCSI names.

use schema::at::At;

/// Validates a name in a volume of a Pod.
pub fn name(at: At) {
    let name = at.as_text();
    if !["iqn", "eui", "naa"].iter().any(|prefix| name.starts_with(prefix)) {
        at.invalid("must be valid format starting with iqn, eui, or naa");
    } else if !is_qualified(name) {
        at.invalid("must be valid format");
    }
}

/// The most bytes of a volume's name and its target portal together, if the initiator has a name.
const SESSION_MAX: usize = 64;
pub const SESSION_TOO_LONG: &str = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified.";

/// Whether the name of a volume and the portal of its source are too long for the name of an iSCSI session.
pub fn is_session_too_long(name: &str, source: At) -> bool {
    source.has("initiatorName") && name.len() + 1 + source.text("targetPortal").len() > SESSION_MAX
}

/// CHAP authentication needs a Secret.
pub fn credentials(source: At) {
    if (source.is_true("chapAuthDiscovery") || source.is_true("chapAuthSession")) && !source.has("secretRef") {
        source.field("secretRef").required("");
    }
}

/// Whether a name is an iSCSI name: `iqn.2001-04.com.example:a`, `eui.` with 16 characters, or `naa.` with 32.
pub fn is_qualified(name: &str) -> bool {
    let is_id = |rest: &str, length: usize| {
        let mut characters = rest.chars();
        // any character may separate
        let is_separated = characters.next().is_some_and(|separator| separator != '\n');
        let id = characters.as_str();
        is_separated && id.len() == length && id.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    match (name.get(..3), name.get(3..)) {
        (Some("iqn"), Some(_)) => has_authority(name),
        (Some("eui"), Some(rest)) => is_id(rest, 16),
        (Some("naa"), Some(rest)) => is_id(rest, 32),
        _ => false,
    }
}

/// Whether a name ends with `iqn.YYYY-MM.AUTHORITY:ID`. The time is linear, since for each colon only the text back to the
/// previous colon is searched.
fn has_authority(name: &str) -> bool {
    let is_space = |c: char| matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{c}');
    let is_outside = |c: char| ",;*&$|".contains(c) || is_space(c);
    let id_from = name.char_indices().rfind(|(_, c)| is_outside(*c)).map_or(0, |(at, c)| at + c.len_utf8());
    let mut begin = 0;
    for (colon, _) in name.match_indices(':') {
        let authority = &name[begin..colon];
        begin = colon + 1;
        if (id_from..name.len()).contains(&begin) && ends_with_authority(authority) {
            return true;
        }
    }
    false
}

/// Whether a text without colons ends with `iqn.YYYY-MM.AUTHORITY`.
fn ends_with_authority(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    let from = text.char_indices().rfind(|(_, c)| !is_part(*c)).map_or(0, |(at, c)| at + c.len_utf8());
    let parts = &text[from..];
    parts.match_indices("iqn.").any(|(at, _)| is_dated(&parts.as_bytes()[at + 4..]))
}

/// Whether bytes begin with `YYYY-MM.` and go on.
fn is_dated(bytes: &[u8]) -> bool {
    let has_form = |(byte, form): (&u8, &u8)| if *form == b'0' { byte.is_ascii_digit() } else { byte == form };
    bytes.len() > 8 && bytes.iter().zip(b"0000-00.").all(has_form)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_iscsi() {
        let (sixteen, two) = ("a".repeat(16), "b".repeat(32));
        for (name, wanted) in [
            ("iqn.2001-04.com.example:a", true),
            ("iqn.2001-04.com.example:a:b", true),
            ("iqn.2001-04.com.example", false),
            ("iqn.2001-4.com.example:a", false),
            ("iqn.2001-04.:a", false),
            ("iqn.2001-04.com.example:a b", false),
            ("iqn-iqn.2001-04.x:a", true),
            ("iqn.2001-04.x:iqn.2001-04.x:", true),
            ("iqn.2001-04.x :a", false),
            ("iqn.2001-04.x:a,iqn.2001-04.y:b", true),
            (&format!("eui.{sixteen}"), true),
            (&format!("eui.{sixteen}a"), false),
            (&format!("naa.{two}"), true),
            ("naa", false),
            ("", false),
            ("iqä.", false),
        ] {
            assert_eq!(is_qualified(name), wanted, "{name}");
        }
    }

    /// A search from each `iqn.` to the end took minutes.
    #[test]
    fn long_names_take_linear_time() {
        assert!(!is_qualified(&"iqn.2001-04.".repeat(200_000)));
        assert!(!is_qualified(&"iqn.2001-04.:".repeat(200_000)));
    }
}
