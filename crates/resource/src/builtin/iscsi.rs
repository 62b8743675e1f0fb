//! Names of iSCSI.

/// Whether a name is one of iSCSI: `iqn.2001-04.com.example:a`, `eui.` and 16 characters, or `naa.` and 32.
pub fn is_qualified(name: &str) -> bool {
    let is_id = |rest: &str, length: usize| {
        let mut characters = rest.chars();
        // any character separates
        let is_separated = characters.next().is_some_and(|separator| separator != '\n');
        let id = characters.as_str();
        is_separated && id.len() == length && id.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    match (name.get(..3), name.get(3..)) {
        (Some("iqn"), Some(_)) => name.match_indices("iqn.").any(|(at, _)| is_dated(&name[at + 4..])),
        (Some("eui"), Some(rest)) => is_id(rest, 16),
        (Some("naa"), Some(rest)) => is_id(rest, 32),
        _ => false,
    }
}

/// Whether a text is `YYYY-MM.AUTHORITY:ID`.
fn is_dated(text: &str) -> bool {
    let Some((authority, id)) = text.split_once(':') else { return false };
    let (Some(date), Some(domain)) = (authority.as_bytes().get(..8), authority.get(8..)) else { return false };
    let is_date = date.iter().zip(b"0000-00.").all(|(byte, form)| match form {
        b'0' => byte.is_ascii_digit(),
        _ => byte == form,
    });
    let is_domain =
        !domain.is_empty() && domain.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte));
    let is_space = |c: char| matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{c}');
    is_date && is_domain && !id.is_empty() && !id.contains(|c: char| ",;*&$|".contains(c) || is_space(c))
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
}
