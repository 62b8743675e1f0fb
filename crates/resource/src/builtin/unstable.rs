//! Versions of kinds that are off by default, beside a stable version.

use std::sync::LazyLock;

use machinery::types::go_struct;
use machinery::{Release, Value};

use super::devices::flat;
use super::{BuiltIn, Form, StoredAs, in_version, kinds};

/// An API version that is off by default, with the kinds in it that are served here.
struct Unstable {
    group: &'static str,
    version: &'static str,
    kinds: &'static [Kind],
    /// The form of its objects, if it is not that of the stable version.
    own: Option<Own>,
    /// How its objects are stored, unless it is the storage version.
    stored_as: Option<StoredAs>,
}

/// A form that differs from that of the stable version.
struct Own {
    /// The package of its Go types.
    package: &'static str,
    /// The defaults of an object, if those of the stable version do not apply.
    default: Option<fn(&mut Value)>,
    /// The path of a field in the stable version, in which objects are prepared and validated.
    checked_path: Option<fn(&str) -> String>,
}

/// A kind in such a version.
struct Kind {
    plural: &'static str,
    /// The warning in every response.
    deprecation: &'static str,
    /// The release that no longer serves it.
    removed_release: &'static str,
    /// The first release that has it.
    since: Release,
}

/// The versions, those of a kind in their order in discovery.
static VERSIONS: [Unstable; 8] = [
    Unstable {
        group: "certificates.k8s.io",
        version: "v1beta1",
        kinds: &[Kind {
            plural: "clustertrustbundles",
            deprecation: "certificates.k8s.io/v1beta1 ClusterTrustBundle is deprecated in v1.37+, unavailable in v1.40+; use certificates.k8s.io/v1 ClusterTrustBundle",
            removed_release: "1.40",
            since: Release::V1_35,
        }],
        own: None,
        stored_as: Some(StoredAs {
            group: "certificates.k8s.io",
            to_stored: |shown| in_version(shown, "certificates.k8s.io/v1"),
            to_shown: |stored| in_version(stored, "certificates.k8s.io/v1beta1"),
        }),
    },
    Unstable {
        group: "certificates.k8s.io",
        version: "v1beta1",
        kinds: &[Kind {
            plural: "podcertificaterequests",
            deprecation: "certificates.k8s.io/v1beta1 PodCertificateRequest is deprecated in v1.37+, unavailable in v1.40+; use certificates.k8s.io/v1 PodCertificateRequest",
            removed_release: "1.40",
            since: Release::V1_35,
        }],
        own: Some(Own { package: "certificates.v1beta1", default: None, checked_path: None }),
        stored_as: None,
    },
    Unstable {
        group: "certificates.k8s.io",
        version: "v1alpha1",
        kinds: &[Kind {
            plural: "clustertrustbundles",
            deprecation: "certificates.k8s.io/v1alpha1 ClusterTrustBundle is deprecated in v1.34+, unavailable in v1.37+",
            removed_release: "1.37",
            since: Release::V1_35,
        }],
        own: None,
        stored_as: Some(StoredAs {
            group: "certificates.k8s.io",
            to_stored: |shown| in_version(shown, "certificates.k8s.io/v1"),
            to_shown: |stored| in_version(stored, "certificates.k8s.io/v1alpha1"),
        }),
    },
    Unstable {
        group: "networking.k8s.io",
        version: "v1beta1",
        kinds: &[
            Kind {
                plural: "ipaddresses",
                deprecation: "networking.k8s.io/v1beta1 IPAddress is deprecated in v1.34+, unavailable in v1.37+",
                removed_release: "1.37",
                since: Release::V1_35,
            },
            Kind {
                plural: "servicecidrs",
                deprecation: "networking.k8s.io/v1beta1 ServiceCIDR is deprecated in v1.34+, unavailable in v1.37+",
                removed_release: "1.37",
                since: Release::V1_35,
            },
        ],
        own: None,
        stored_as: Some(StoredAs {
            group: "networking.k8s.io",
            to_stored: |shown| in_version(shown, "networking.k8s.io/v1"),
            to_shown: |stored| in_version(stored, "networking.k8s.io/v1beta1"),
        }),
    },
    Unstable {
        group: "storage.k8s.io",
        version: "v1beta1",
        kinds: &[Kind {
            plural: "volumeattributesclasses",
            deprecation: "storage.k8s.io/v1beta1 VolumeAttributesClass is deprecated in v1.34+, unavailable in v1.37+; use storage.k8s.io/v1 VolumeAttributesClass",
            removed_release: "1.37",
            since: Release::V1_35,
        }],
        own: None,
        stored_as: Some(StoredAs {
            group: "storage.k8s.io",
            to_stored: |shown| in_version(shown, "storage.k8s.io/v1"),
            to_shown: |stored| in_version(stored, "storage.k8s.io/v1beta1"),
        }),
    },
    Unstable {
        group: "resource.k8s.io",
        version: "v1beta2",
        kinds: &[
            Kind {
                plural: "deviceclasses",
                deprecation: "resource.k8s.io/v1beta2 DeviceClass is deprecated in v1.36+, unavailable in v1.39+",
                removed_release: "1.39",
                since: Release::V1_35,
            },
            Kind {
                plural: "devicetaintrules",
                deprecation: "resource.k8s.io/v1beta2 DeviceTaintRule is deprecated in v1.39+, unavailable in v1.42+",
                removed_release: "1.42",
                since: Release::V1_36,
            },
            Kind {
                plural: "resourceclaims",
                deprecation: "resource.k8s.io/v1beta2 ResourceClaim is deprecated in v1.36+, unavailable in v1.39+",
                removed_release: "1.39",
                since: Release::V1_35,
            },
            Kind {
                plural: "resourceclaimtemplates",
                deprecation: "resource.k8s.io/v1beta2 ResourceClaimTemplate is deprecated in v1.36+, unavailable in v1.39+",
                removed_release: "1.39",
                since: Release::V1_35,
            },
            Kind {
                plural: "resourceslices",
                deprecation: "resource.k8s.io/v1beta2 ResourceSlice is deprecated in v1.36+, unavailable in v1.39+",
                removed_release: "1.39",
                since: Release::V1_35,
            },
        ],
        own: None,
        stored_as: Some(StoredAs {
            group: "resource.k8s.io",
            to_stored: |shown| in_version(shown, "resource.k8s.io/v1"),
            to_shown: |stored| in_version(stored, "resource.k8s.io/v1beta2"),
        }),
    },
    Unstable {
        group: "resource.k8s.io",
        version: "v1beta1",
        kinds: &[
            Kind {
                plural: "deviceclasses",
                deprecation: "resource.k8s.io/v1beta1 DeviceClass is deprecated in v1.35+, unavailable in v1.38+",
                removed_release: "1.38",
                since: Release::V1_35,
            },
            Kind {
                plural: "resourceclaims",
                deprecation: "resource.k8s.io/v1beta1 ResourceClaim is deprecated in v1.35+, unavailable in v1.38+",
                removed_release: "1.38",
                since: Release::V1_35,
            },
            Kind {
                plural: "resourceclaimtemplates",
                deprecation: "resource.k8s.io/v1beta1 ResourceClaimTemplate is deprecated in v1.35+, unavailable in v1.38+",
                removed_release: "1.38",
                since: Release::V1_35,
            },
            Kind {
                plural: "resourceslices",
                deprecation: "resource.k8s.io/v1beta1 ResourceSlice is deprecated in v1.35+, unavailable in v1.38+",
                removed_release: "1.38",
                since: Release::V1_35,
            },
        ],
        own: Some(Own {
            package: "resource.v1beta1",
            default: Some(flat::default),
            checked_path: Some(flat::stable_path),
        }),
        stored_as: Some(StoredAs { group: "resource.k8s.io", to_stored: flat::to_stable, to_shown: flat::to_flat }),
    },
    Unstable {
        group: "resource.k8s.io",
        version: "v1alpha3",
        kinds: &[Kind {
            plural: "devicetaintrules",
            deprecation: "resource.k8s.io/v1alpha3 DeviceTaintRule is deprecated in v1.36+, unavailable in v1.39+",
            removed_release: "1.39",
            since: Release::V1_35,
        }],
        own: None,
        stored_as: Some(StoredAs {
            group: "resource.k8s.io",
            to_stored: |shown| in_version(shown, "resource.k8s.io/v1"),
            to_shown: |stored| in_version(stored, "resource.k8s.io/v1alpha3"),
        }),
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
    let Kind { deprecation, removed_release, since, .. } =
        version.kinds.iter().find(|kind| kind.plural == row.plural)?;
    let (form, default) = match (&version.own, &row.form) {
        _ if row.group != version.group => return None,
        (Some(own), _) => {
            let of_version = go_struct(&format!("{}.{}", own.package, row.kind))?;
            (Form::Named(of_version.name), own.default.unwrap_or(row.default))
        }
        (None, Form::Named(name)) => (Form::Named(name), row.default),
        (None, Form::Typed(shape)) => (Form::Typed(shape), row.default),
        (None, Form::Definition(_)) => return None,
    };
    let stored_as = version.stored_as.as_ref();
    let checked_path = version.own.as_ref().and_then(|own| own.checked_path);
    let version = version.version;
    Some(BuiltIn {
        version,
        deprecation,
        removed_release,
        since: *since,
        stored_as,
        checked_path,
        form,
        default,
        ..*row
    })
}

/// The rows of a kind.
pub fn rows_of(row: &BuiltIn) -> impl Iterator<Item = &'static BuiltIn> {
    rows().iter().filter(move |candidate| *candidate == row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_has_its_kinds() {
        let versions = |plural: &str| -> Vec<&str> {
            let row = kinds().find(|row| row.plural == plural).unwrap();
            rows_of(row).map(|row| row.version).collect()
        };
        assert_eq!(versions("devicetaintrules"), ["v1beta2", "v1alpha3"]);
        assert_eq!(versions("resourceclaims"), ["v1beta2", "v1beta1"]);
        assert_eq!(versions("pods"), [""; 0]);
        assert_eq!(rows().len(), VERSIONS.iter().map(|version| version.kinds.len()).sum::<usize>());
        assert!(rows().iter().all(|row| row.structure().name == row.kind));
    }
}
