//! The names and schemas of Go types in OpenAPI documents.

use super::TEXT;

/// The two words after `word` on the lines that precede the structs.
fn pairs(word: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let head = TEXT.lines().take_while(|line| ["#", "package ", "schema "].iter().any(|mark| line.starts_with(mark)));
    head.filter_map(move |line| line.strip_prefix(word)?.strip_prefix(' ')?.split_once(' '))
}

/// The name in OpenAPI of a type: `io.k8s.api.core.v1.Pod` for `core.v1.Pod`. `None` if its package is unknown.
#[must_use]
pub fn openapi_name(name: &str) -> Option<String> {
    let (package, bare) = name.rsplit_once('.')?;
    let (_, published) = pairs("package").find(|(known, _)| *known == package)?;
    Some(format!("{published}.{bare}"))
}

/// The type with a name in OpenAPI: `core.v1.Pod` for `io.k8s.api.core.v1.Pod`. `None` if its package is unknown.
#[must_use]
pub fn struct_of_openapi_name(name: &str) -> Option<String> {
    let (published, bare) = name.rsplit_once('.')?;
    let (package, _) = pairs("package").find(|(_, known)| *known == published)?;
    Some(format!("{package}.{bare}"))
}

/// The v3 schema, as JSON, of a type that is encoded in its own way, such as `meta.v1.Time`.
#[must_use]
pub fn own_schema(name: &str) -> Option<&'static str> {
    pairs("schema").find(|(known, _)| *known == name).map(|(_, schema)| schema)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_converted_both_ways() {
        let cases = [
            ("core.v1.Pod", "io.k8s.api.core.v1.Pod"),
            ("meta.v1.Time", "io.k8s.apimachinery.pkg.apis.meta.v1.Time"),
            ("resource.Quantity", "io.k8s.apimachinery.pkg.api.resource.Quantity"),
            ("resource.v1.Device", "io.k8s.api.resource.v1.Device"),
        ];
        for (name, published) in cases {
            assert_eq!(openapi_name(name).as_deref(), Some(published));
            assert_eq!(struct_of_openapi_name(published).as_deref(), Some(name));
        }
        assert_eq!(openapi_name("nothing.v1.Pod"), None);
        assert_eq!(own_schema("meta.v1.Time"), Some(r#"{"format":"date-time","type":"string"}"#));
        assert_eq!(own_schema("core.v1.Pod"), None);
    }
}
