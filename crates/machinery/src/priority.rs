//! The order of versions of an API group, as in discovery.

use std::cmp::Ordering;

/// Compares versions by priority, highest first: GA before beta before alpha, higher numbers first, then all other
/// names in lexicographic order.
pub fn kube_aware(a: &str, b: &str) -> Ordering {
    match (parse(a), parse(b)) {
        (Some(a), Some(b)) => b.cmp(&a),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => a.cmp(b),
    }
}

/// `(stage, major, minor)`; greater is preferred. Leading zeros are accepted.
fn parse(version: &str) -> Option<(u8, u64, u64)> {
    let rest = version.strip_prefix('v')?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let major = rest.get(..digits)?.parse().ok()?;
    let stage = &rest[digits..];
    let staged = |name: &str, rank: u8| Some((rank, major, stage.strip_prefix(name)?.parse().ok()?));
    if stage.is_empty() { Some((2, major, 0)) } else { staged("beta", 1).or_else(|| staged("alpha", 0)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_sort_by_maturity() {
        let want = "v10 v2 v1 v11beta2 v10beta3 v3beta1 v12alpha1 v11alpha2 foo1 foo10";
        let mut names: Vec<&str> = want.split(' ').rev().collect();
        names.sort_by(|a, b| kube_aware(a, b));
        assert_eq!(names.join(" "), want);
    }
}
