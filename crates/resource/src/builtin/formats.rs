//! The formats of texts that `rules/rules.txt` names.

use machinery::field::{FieldError, FieldPath};
use machinery::{Value, names};

use super::prefixed_names;

/// Returns the errors of a text that does not have the format.
pub type Format = fn(&str, &FieldPath) -> Vec<FieldError>;

/// The format with this name.
pub fn named(name: &str) -> Option<Format> {
    Some(match name {
        "short-name" => |text, path| invalid(text, path, in_bytes(names::dns1123_label(text))),
        "long-name" => |text, path| invalid(text, path, in_bytes(names::dns1123_subdomain(text))),
        "long-name-caseless" => |text, path| invalid(text, path, caseless(&text.to_ascii_lowercase())),
        "label-key" => |text, path| invalid(text, path, names::qualified_name(text)),
        "uuid" => |text, path| {
            let why = "must be a lowercase UUID in 8-4-4-4-12 format";
            if is_uuid(text) { vec![] } else { invalid(text, path, vec![why.to_owned()]) }
        },
        "path-segment" => |text, path| invalid(text, path, names::path_segment(text)),
        "prefixed-label-key" => |text, path| invalid(text, path, prefixed_names::label_key_problems(text)),
        "unreserved-domain" => |text, path| invalid(text, path, prefixed_names::reserved_problems(text)),
        "pool-name" => pool_name,
        "extended-resource-name" => |text, path| invalid(text, path, extended_resource_name(text)),
        "fully-qualified-name" => fully_qualified_name,
        _ => return None,
    })
}

fn invalid(text: &str, path: &FieldPath, problems: Vec<String>) -> Vec<FieldError> {
    problems.into_iter().map(|why| FieldError::invalid(path, &Value::from(text), why)).collect()
}

/// Formats count bytes where the rules that are written by hand say characters.
fn in_bytes(problems: Vec<String>) -> Vec<String> {
    problems
        .into_iter()
        .map(|why| {
            why.replace(" characters", " bytes").replacen(
                "lower case alphanumeric bytes",
                "lower case alphanumeric characters",
                1,
            )
        })
        .collect()
}

/// The problems of a subdomain whose letters may be of either case, and are given in lower case.
pub fn caseless(lower: &str) -> Vec<String> {
    const CASELESS: &str = "an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'Example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
    let shown = |why: String| {
        let is_long = why.starts_with("must be no more");
        if is_long { "must be no more than 253 bytes".to_owned() } else { CASELESS.to_owned() }
    };
    names::dns1123_subdomain(lower).into_iter().map(shown).collect()
}

fn pool_name(text: &str, path: &FieldPath) -> Vec<FieldError> {
    const BYTES_MAX: usize = 253;
    let mut errors = vec![];
    if text.len() > BYTES_MAX {
        errors.push(FieldError::too_long(path, BYTES_MAX));
    }
    for (i, part) in text.split('/').enumerate() {
        let prefixed = |why: String| format!("segment {i}: {why}");
        if part.is_empty() {
            errors.extend(invalid(text, path, vec![prefixed("must not be empty".to_owned())]));
        } else {
            let problems = in_bytes(names::dns1123_subdomain(part));
            errors.extend(invalid(part, path, problems.into_iter().map(prefixed).collect()));
        }
    }
    errors
}

fn extended_resource_name(text: &str) -> Vec<String> {
    const OWN: &str = "kubernetes.io/";
    const REQUESTS: &str = "requests.";
    let mut problems = vec![];
    if !text.contains('/') {
        problems.push("a name must be a domain-prefixed path, such as 'example.com/my-prop'".to_owned());
    } else if text.contains(OWN) {
        problems.push(format!("must not have {OWN:?} domain"));
    }
    if text.starts_with(REQUESTS) {
        problems.push(format!("must not have {REQUESTS:?} prefix"));
    }
    // a quota names it with this prefix
    problems.extend(
        names::qualified_name(&format!("{REQUESTS}{text}"))
            .into_iter()
            .map(|why| why.replace("253 characters", "253 bytes")),
    );
    problems
}

fn fully_qualified_name(text: &str, path: &FieldPath) -> Vec<FieldError> {
    const DOMAIN_BYTES_MAX: usize = 63;
    let mut errors = vec![];
    let missing = |why: &str| invalid("", path, vec![why.to_owned()]);
    match text.split('/').collect::<Vec<_>>()[..] {
        [own] => identifier(own, path, &mut errors),
        [domain, own] => {
            if domain.is_empty() {
                errors.extend(missing("prefix must not be empty"));
            } else {
                if domain.len() > DOMAIN_BYTES_MAX {
                    errors.push(FieldError::too_long(path, DOMAIN_BYTES_MAX));
                }
                let problems = in_bytes(names::dns1123_subdomain(domain)).into_iter();
                errors.extend(invalid(domain, path, problems.map(|why| format!("prefix: {why}")).collect()));
            }
            match own {
                "" => errors.extend(missing("name must not be empty")),
                _ => identifier(own, path, &mut errors),
            }
        }
        // upstream accepts more than one slash
        _ => {}
    }
    if !text.contains('/') {
        let why = "a fully qualified name must be a domain and a name separated by a slash";
        errors.extend(invalid(text, path, vec![why.to_owned()]));
    }
    errors
}

/// Whether a text is a lowercase UUID with hyphens.
pub fn is_uuid(text: &str) -> bool {
    let is_hyphen = |place: usize| [8, 13, 18, 23].contains(&place);
    let fits = |(place, byte): (usize, u8)| match is_hyphen(place) {
        true => byte == b'-',
        false => byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte),
    };
    text.len() == 36 && text.bytes().enumerate().all(fits)
}

/// An identifier of C.
pub fn identifier(name: &str, path: &FieldPath, errors: &mut Vec<FieldError>) {
    /// The maximum size of the part of a name after the domain.
    const IDENTIFIER_BYTES_MAX: usize = 32;
    const NO_IDENTIFIER: &str = "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')";
    if name.len() > IDENTIFIER_BYTES_MAX {
        errors.push(FieldError::too_long(path, IDENTIFIER_BYTES_MAX));
    }
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) || !name.chars().all(word) {
        errors.push(FieldError::invalid(path, &Value::from(name), NO_IDENTIFIER));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids_are_normalized() {
        assert!(is_uuid("0d2a9c7e-1f3b-4c5d-8e9f-0123456789ab"));
        for text in ["", "0d2a9c7e1f3b4c5d8e9f0123456789ab", "0D2A9C7E-1f3b-4c5d-8e9f-0123456789ab"] {
            assert!(!is_uuid(text), "{text}");
        }
    }
}
