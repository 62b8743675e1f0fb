//! Versions of kinds that are off by default and have the form of the stored version.

use std::sync::LazyLock;

use super::{BuiltIn, Form, StoredAs, in_version, kinds};

/// An API version that is off by default, with the kinds in it that are served here.
struct Unstable {
    group: &'static str,
    version: &'static str,
    kinds: &'static [Kind],
    stored_as: StoredAs,
}

/// A kind in such a version.
struct Kind {
    plural: &'static str,
    /// The warning in every response.
    deprecation: &'static str,
    /// The release that no longer serves it.
    removed_release: &'static str,
}

/// The versions, those of a kind in their order in discovery.
static VERSIONS: [Unstable; 3] = [
    Unstable {
        group: "certificates.k8s.io",
        version: "v1beta1",
        kinds: &[Kind {
            plural: "clustertrustbundles",
            deprecation: "certificates.k8s.io/v1beta1 ClusterTrustBundle is deprecated in v1.37+, unavailable in v1.40+; use certificates.k8s.io/v1 ClusterTrustBundle",
            removed_release: "1.40",
        }],
        stored_as: StoredAs {
            group: "certificates.k8s.io",
            to_stored: |shown| in_version(shown, "certificates.k8s.io/v1"),
            to_shown: |stored| in_version(stored, "certificates.k8s.io/v1beta1"),
        },
    },
    Unstable {
        group: "resource.k8s.io",
        version: "v1beta2",
        kinds: &[
            Kind {
                plural: "deviceclasses",
                deprecation: "resource.k8s.io/v1beta2 DeviceClass is deprecated in v1.36+, unavailable in v1.39+",
                removed_release: "1.39",
            },
            Kind {
                plural: "devicetaintrules",
                deprecation: "resource.k8s.io/v1beta2 DeviceTaintRule is deprecated in v1.39+, unavailable in v1.42+",
                removed_release: "1.42",
            },
            Kind {
                plural: "resourceclaims",
                deprecation: "resource.k8s.io/v1beta2 ResourceClaim is deprecated in v1.36+, unavailable in v1.39+",
                removed_release: "1.39",
            },
            Kind {
                plural: "resourceclaimtemplates",
                deprecation: "resource.k8s.io/v1beta2 ResourceClaimTemplate is deprecated in v1.36+, unavailable in v1.39+",
                removed_release: "1.39",
            },
            Kind {
                plural: "resourceslices",
                deprecation: "resource.k8s.io/v1beta2 ResourceSlice is deprecated in v1.36+, unavailable in v1.39+",
                removed_release: "1.39",
            },
        ],
        stored_as: StoredAs {
            group: "resource.k8s.io",
            to_stored: |shown| in_version(shown, "resource.k8s.io/v1"),
            to_shown: |stored| in_version(stored, "resource.k8s.io/v1beta2"),
        },
    },
    Unstable {
        group: "resource.k8s.io",
        version: "v1alpha3",
        kinds: &[Kind {
            plural: "devicetaintrules",
            deprecation: "resource.k8s.io/v1alpha3 DeviceTaintRule is deprecated in v1.36+, unavailable in v1.39+",
            removed_release: "1.39",
        }],
        stored_as: StoredAs {
            group: "resource.k8s.io",
            to_stored: |shown| in_version(shown, "resource.k8s.io/v1"),
            to_shown: |stored| in_version(stored, "resource.k8s.io/v1alpha3"),
        },
    },
];

/// The rows of all versions of [`VERSIONS`]; those of one kind are beside each other.
pub fn rows() -> &'static [BuiltIn] {
    static ROWS: LazyLock<Vec<BuiltIn>> = LazyLock::new(|| {
        let of_kind = |row: &'static BuiltIn| VERSIONS.iter().filter_map(move |version| in_unstable(row, version));
        kinds().flat_map(of_kind).collect()
    });
    &ROWS
}

/// The row of a kind in a version, if it has that.
fn in_unstable(row: &'static BuiltIn, version: &'static Unstable) -> Option<BuiltIn> {
    let Kind { deprecation, removed_release, .. } = version.kinds.iter().find(|kind| kind.plural == row.plural)?;
    let form = match row.form {
        _ if row.group != version.group => return None,
        Form::Named(name) => Form::Named(name),
        Form::Typed(shape) => Form::Typed(shape),
        Form::Definition(_) => return None,
    };
    let (version, stored_as) = (version.version, Some(&version.stored_as));
    Some(BuiltIn { version, deprecation, removed_release, stored_as, form, ..*row })
}

/// The rows of a kind for which `is_on` holds. A kind has at most two of them.
pub fn rows_of(row: &BuiltIn, is_on: impl Fn(&BuiltIn) -> bool) -> &'static [BuiltIn] {
    let is_served = |candidate: &BuiltIn| candidate == row && is_on(candidate);
    let rows = rows();
    let Some(first) = rows.iter().position(is_served) else { return &[] };
    let count = rows[first..].iter().take_while(|row| is_served(row)).count();
    &rows[first..first + count]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_versions_that_are_on() {
        let rule = kinds().find(|row| row.plural == "devicetaintrules").unwrap();
        let versions = |on: &[&str]| -> Vec<&str> {
            rows_of(rule, |row| on.contains(&row.version)).iter().map(|row| row.version).collect()
        };
        assert_eq!(versions(&[]), [""; 0]);
        assert_eq!(versions(&["v1beta2"]), ["v1beta2"]);
        assert_eq!(versions(&["v1alpha3"]), ["v1alpha3"]);
        assert_eq!(versions(&["v1beta1", "v1beta2", "v1alpha3"]), ["v1beta2", "v1alpha3"]);
        assert_eq!(rows().len(), 7);
    }
}
