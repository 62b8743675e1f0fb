//! Names with a domain before them.

use machinery::names;

/// The problems of a name with a domain before it, such as `example.com/key`.
pub fn label_key_problems(text: &str) -> Vec<String> {
    let problems = names::qualified_name(text);
    match problems.is_empty() && !text.contains('/') {
        true => vec!["must include a prefix (e.g. 'example.com/key')".to_owned()],
        false => problems,
    }
}

/// The problem of a name whose domain is one of Kubernetes.
pub fn reserved_problems(text: &str) -> Vec<String> {
    let domain = text.split('/').next().unwrap_or_default().to_lowercase();
    let domain = domain.trim().trim_end_matches('.');
    let is_below = |own: &str| domain.strip_suffix(own).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    let why = "domain names *.k8s.io, *.kubernetes.io are reserved";
    if ["k8s.io", "kubernetes.io"].into_iter().any(is_below) { vec![why.to_owned()] } else { vec![] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_of_kubernetes_are_reserved() {
        for name in ["k8s.io/x", "a.K8S.io./x", "kubernetes.io"] {
            assert_eq!(reserved_problems(name).len(), 1, "{name}");
        }
        for name in ["example.com/k8s.io", "ak8s.io/x"] {
            assert_eq!(reserved_problems(name).len(), 0, "{name}");
        }
    }

    #[test]
    fn names_need_a_domain() {
        assert_eq!(label_key_problems("example.com/key"), [""; 0]);
        assert_eq!(label_key_problems("key"), ["must include a prefix (e.g. 'example.com/key')"]);
        assert!(!label_key_problems("a/b/c").is_empty());
    }
}
