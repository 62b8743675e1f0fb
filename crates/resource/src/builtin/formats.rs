//! The formats of texts that `rules.txt` and `declared.txt` name, as Kubernetes does without `k8s-`.

use machinery::names;

use super::prefixed_names;
use schema::at::At;

/// Reports the errors of a text, which is a value or the key of an entry, at its place.
pub type Format = fn(&str, At);

pub fn named(name: &str) -> Option<Format> {
    Some(match name {
        "short-name" => |text, at| at.shown_as_text(text).invalid_each(in_bytes(names::dns1123_label(text))),
        "long-name" => |text, at| at.shown_as_text(text).invalid_each(in_bytes(names::dns1123_subdomain(text))),
        "long-name-caseless" => |text, at| at.shown_as_text(text).invalid_each(caseless(&text.to_ascii_lowercase())),
        "label-key" => |text, at| at.shown_as_text(text).invalid_each(names::qualified_name(text)),
        "uuid" => |text, at| {
            at.shown_as_text(text).invalid_if(!is_uuid(text), "must be a lowercase UUID in 8-4-4-4-12 format");
        },
        "path-segment-name" => |text, at| at.shown_as_text(text).invalid_each(names::path_segment(text)),
        "prefixed-label-key" => {
            |text, at| at.shown_as_text(text).invalid_each(prefixed_names::label_key_problems(text))
        }
        "unreserved-domain" => |text, at| at.shown_as_text(text).invalid_each(prefixed_names::reserved_problems(text)),
        "resource-pool-name" => pool_name,
        "extended-resource-name" => |text, at| at.shown_as_text(text).invalid_each(extended_resource_name(text)),
        "resource-fully-qualified-name" => fully_qualified_name,
        _ => return None,
    })
}

/// Declared formats say bytes where hand-written validation says characters.
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

/// The problems of a subdomain that may have capital letters. `lower` is the name in lower case.
pub fn caseless(lower: &str) -> Vec<String> {
    const CASELESS: &str = "an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'Example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
    let shown = |why: String| {
        let is_long = why.starts_with("must be no more");
        if is_long { "must be no more than 253 bytes".to_owned() } else { CASELESS.to_owned() }
    };
    names::dns1123_subdomain(lower).into_iter().map(shown).collect()
}

fn pool_name(text: &str, at: At) {
    const BYTES_MAX: usize = 253;
    if text.len() > BYTES_MAX {
        at.too_long(BYTES_MAX);
    }
    for (i, part) in text.split('/').enumerate() {
        if part.is_empty() {
            at.shown_as_text(text).invalid(format!("segment {i}: must not be empty"));
        }
        for why in in_bytes(names::dns1123_subdomain(part)).into_iter().filter(|_| !part.is_empty()) {
            at.shown_as_text(part).invalid(format!("segment {i}: {why}"));
        }
    }
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

fn fully_qualified_name(text: &str, at: At) {
    const DOMAIN_BYTES_MAX: usize = 63;
    match text.split('/').collect::<Vec<_>>()[..] {
        [own] => identifier(own, at),
        [domain, own] => {
            if domain.is_empty() {
                at.shown_as_text("").invalid("prefix must not be empty");
            } else {
                if domain.len() > DOMAIN_BYTES_MAX {
                    at.too_long(DOMAIN_BYTES_MAX);
                }
                let problems = in_bytes(names::dns1123_subdomain(domain)).into_iter();
                at.shown_as_text(domain).invalid_each(problems.map(|why| format!("prefix: {why}")));
            }
            match own {
                "" => at.shown_as_text("").invalid("name must not be empty"),
                _ => identifier(own, at),
            }
        }
        // upstream accepts more than one slash
        _ => {}
    }
    if !text.contains('/') {
        at.shown_as_text(text).invalid("a fully qualified name must be a domain and a name separated by a slash");
    }
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
pub fn identifier(name: &str, at: At) {
    /// The maximum size of the part of a name after the domain.
    const IDENTIFIER_BYTES_MAX: usize = 32;
    const NO_IDENTIFIER: &str = "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')";
    if name.len() > IDENTIFIER_BYTES_MAX {
        at.too_long(IDENTIFIER_BYTES_MAX);
    }
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) || !name.chars().all(word) {
        at.shown_as_text(name).invalid(NO_IDENTIFIER);
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
