use crate::catalogue::CATALOGUE;
use machinery::{FieldError, FieldPath, Release, Value, json};
use resource::builtin::{BuiltIn, Generation, GroupSource, OwnEndpoint};

use super::{catalogue_of, problem, row_named};
use crate::admissionregistration::webhooks::REVIEWS;

#[test]
fn what_rows_name_exists() {
    for row in CATALOGUE.rows() {
        if let Some(stored) = row.stored_as {
            let is_stored = |other: &&BuiltIn| other.api_version == stored && other.kind == row.kind;
            assert!(CATALOGUE.rows().iter().find(is_stored).is_some_and(|other| other.stored_as.is_none()));
        }
        let versions: Vec<_> =
            CATALOGUE.rows().iter().filter(|other| *other == row).map(|other| other.version).collect();
        assert!(row.storage_hash.is_none_or(|hashed| versions.contains(&hashed)), "{}", row.kind);
    }
}

#[test]
fn bad_lines_are_refused_with_their_number() {
    const GROUP: &str = "# comment\n\ngroup apps 17800 v1=15\n";
    const KIND: &str = "apps/v1 deployments Deployment deployment namespaced";
    let cases = [
        ("", ""),
        ("group apps high v1=1", "group/kinds.txt:4: a group has a priority"),
        ("group apps 1 v1", "group/kinds.txt:4: no version and its priority: v1"),
        ("apps/v1 deployments", "group/kinds.txt:4: a kind has a version, a plural, a kind, a singular and a scope"),
        ("batch/v1 jobs Job job namespaced", "group/kinds.txt:4: batch/v1 is not a version of the group"),
        ("apps/v1 deployments Deployment deployment here", "group/kinds.txt:4: unknown scope here"),
        ("  since=1.36", "group/kinds.txt:4: a line of a kind without the kind"),
        ("KIND short=deploy since=1.12", "group/kinds.txt:4: 1.12 is not a release that is served"),
        ("KIND deprecated=soon", "group/kinds.txt:4: soon is not a release"),
        ("KIND colour=red", "group/kinds.txt:4: unknown word colour=red"),
        ("KIND off=1", "group/kinds.txt:4: unknown word off=1"),
        ("KIND\n  generation=changes\n  put=creates,often", "group/kinds.txt:6: unknown word put=often"),
        ("KIND\n  on-update=object,all", "group/kinds.txt:5: unknown word on-update=object,all"),
        ("KIND\n status", "group/kinds.txt:5: a subresource has verbs"),
        ("KIND\n status verbs=get metadata=lost", "group/kinds.txt:5: unknown word metadata=lost"),
        ("KIND\n scale autoscaling/v1 Scale verbs=get big", "group/kinds.txt:5: unknown word big"),
        ("KIND\n pause verbs=update", "group/kinds.txt:5: the behaviour of Deployment has no part pause"),
    ];
    for (lines, want) in cases {
        let text = format!("{GROUP}{}", lines.replace("KIND", KIND)).leak();
        assert_eq!(
            problem(GroupSource { folder: "group", kinds: text, ..GroupSource::EMPTY }).unwrap_or_default(),
            want,
            "{lines}"
        );
    }
}

#[test]
fn later_versions_have_the_facts_of_the_first() {
    let text = "group batch 1 v2=2 v1=1\nbatch/v2 jobs Job job namespaced short=j gate=Jobs\n  since=1.37 stored-as=batch/v1\n\
         \x20 generation=changes\n status verbs=get settable\nbatch/v1 jobs Job job namespaced off\n";
    let [new, old] = catalogue_of(GroupSource { kinds: text, ..GroupSource::EMPTY }).rows() else { panic!("two rows") };
    assert_eq!((new.lifecycle.since, old.lifecycle.since), (Release::V1_37, Release::V1_35));
    assert_eq!((new.stored_as, old.stored_as), (Some("batch/v1"), None));
    assert_eq!((new.form, old.form), ("v2", "v1"));
    assert_eq!((&old.short_names[..], old.gate, old.generation), (&["j"][..], Some("Jobs"), Generation::Changes));
    assert_eq!(old.status.map(|status| status.is_reset), Some(false));
}

#[test]
fn every_entry_is_that_of_a_kind() {
    let posted = CATALOGUE.rows().iter().flat_map(|row| &row.subresources).filter_map(|own| match own.endpoint {
        OwnEndpoint::Posted(row) => Some(row),
        _ => None,
    });
    let used: Vec<&str> = CATALOGUE.rows().iter().chain(posted).map(|row| row.behaviour.of).collect();
    for entry in CATALOGUE.sources().behaviours() {
        assert!(used.contains(&entry.of), "{}", entry.of);
    }
}

#[test]
fn entries_agree_with_the_facts() {
    for row in CATALOGUE.rows() {
        let verbs = match (row.review(), row.computed()) {
            (Some(_), _) => Some(vec!["create"]),
            (_, Some(_)) => Some(vec!["get", "list"]),
            _ if row.kind == "Namespace" => row.verbs.clone(),
            _ => None,
        };
        assert_eq!(row.verbs, verbs, "{}", row.kind);
        for (part, _) in row.behaviour.parts {
            assert!(row.own_subresource(part).is_some(), "{} {part}", row.kind);
        }
    }
}

#[test]
fn versions_are_deprecated_since_a_release() {
    let cases = [
        ("v1", "Pod", [false, false, false], ""),
        ("v1", "ComponentStatus", [true, true, true], "v1 ComponentStatus is deprecated in v1.19+"),
        (
            "v1",
            "Endpoints",
            [true, true, true],
            "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
        ),
        (
            "certificates.k8s.io/v1beta1",
            "ClusterTrustBundle",
            [false, false, true],
            "certificates.k8s.io/v1beta1 ClusterTrustBundle is deprecated in v1.37+, unavailable in v1.40+; use certificates.k8s.io/v1 ClusterTrustBundle",
        ),
        (
            "resource.k8s.io/v1beta2",
            "DeviceClass",
            [false, true, true],
            "resource.k8s.io/v1beta2 DeviceClass is deprecated in v1.36+, unavailable in v1.39+",
        ),
        ("resource.k8s.io/v1beta2", "DeviceTaintRule", [false, false, false], ""),
    ];
    for (api_version, kind, want, text) in cases {
        let row = row_named(api_version, kind);
        let warnings = Release::ALL.map(|release| row.deprecation(release));
        assert_eq!(warnings.each_ref().map(Option::is_some), want, "{kind}");
        assert_eq!(warnings.last().cloned().flatten().unwrap_or_default(), text);
    }
}

#[test]
fn declared_errors_replace_and_follow_the_others() {
    let role = json!({"rules": [{"apiGroups": [""]}]});
    let written = || {
        let at = |name: &str| FieldPath::new(format!("rules[0].{name}"));
        let resources = FieldError::required(&at("resources"), "needed");
        vec![FieldError::required(&at("verbs"), "needed"), resources.clone(), resources]
    };
    let texts = |release| -> Vec<String> {
        row_named("rbac.authorization.k8s.io/v1", "Role")
            .declared_errors(&role, None, written(), release)
            .iter()
            .map(ToString::to_string)
            .collect()
    };
    assert_eq!(texts(Release::V1_36).len(), 3);
    let want = ["rules[0].resources: Required value: needed", "rules[0].verbs: Required value"];
    assert_eq!(texts(Release::V1_37), want);
}

#[test]
fn bodies_of_every_known_type_are_decoded() {
    let wrong = Value::from([("metadata", Value::from("x"))]);
    for row in CATALOGUE.registered() {
        let api_version = row.api_version;
        for kind in [row.kind.to_owned(), format!("{}List", row.kind)] {
            let error = CATALOGUE.shape_of(api_version, &kind, &wrong).map(|shaped| shaped.error.unwrap_or_default());
            assert!(error.is_none_or(|error| error.contains(".metadata of type")), "{api_version} {kind}");
        }
    }
    for kind in [
        "APIGroup", "APIGroupList", "APIResourceList", "APIVersions", "Status", "CreateOptions", "DeleteOptions",
        "WatchEvent",
    ] {
        assert!(CATALOGUE.shape_of("v1", kind, &wrong).is_some(), "{kind}");
    }
}

#[test]
fn types_are_known_by_version_and_kind() {
    for (api_version, kind) in [
        ("v1", "Pod"),
        ("v1", "PodList"),
        ("v1", "Status"),
        ("x/v1", "Status"),
        ("apps/v1", "Deployment"),
        ("coordination.k8s.io/v1", "DeleteOptions"),
        ("batch/v1", "WatchEvent"),
        ("resource.k8s.io/v1beta2", "DeleteOptions"),
        ("coordination.k8s.io/v1alpha2", "LeaseCandidate"),
        ("v1", "List"),
        ("authentication.k8s.io/v1", "TokenRequest"),
        ("policy/v1", "Eviction"),
        ("policy/v1beta1", "PodDisruptionBudgetList"),
        ("policy/v1beta1", "DeleteOptions"),
    ] {
        assert!(CATALOGUE.is_known(api_version, kind), "{api_version} {kind}");
    }
    for (api_version, kind) in [
        ("v2", "Pod"),
        ("apps/v1", "Pod"),
        ("", "DeleteOptions"),
        ("x/v1", "DeleteOptions"),
        ("policy/v1", "EvictionList"),
        ("authentication.k8s.io/v1", "TokenReviewList"),
        ("policy/v1beta1", "PodDisruptionBudget*"),
    ] {
        assert!(!CATALOGUE.is_known(api_version, kind), "{api_version} {kind}");
    }
    for (api_version, kind, want) in [
        ("v9", "Status", true),
        ("v1", "CreateOptions", true),
        ("apiregistration.k8s.io/v1", "WatchEvent", true),
        ("apps/v1", "CreateOptions", false),
        ("apps/v1", "Deployment", false),
    ] {
        assert_eq!(
            CATALOGUE.is_known_in_scheme_of("apiregistration.k8s.io", api_version, kind),
            want,
            "{api_version} {kind}"
        );
    }
}

#[test]
fn every_review_is_listed() {
    let reviews = CATALOGUE.kinds().filter(|row| row.review().is_some() && !row.group.is_empty());
    assert_eq!(reviews.map(|row| format!("{}.{}", row.plural, row.group)).collect::<Vec<_>>(), REVIEWS);
}
