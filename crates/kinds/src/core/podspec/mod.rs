//! Rules for the spec of Pods and of Pod templates that are neither defaults nor entries of the table of rules.

mod containers;
mod environment;
mod ephemeral;
mod groups;
mod host;
mod mounts;
mod resources;
mod scheduling;
mod security;
mod whole;
mod windows;

pub use containers::image;
pub use resources::{container_resource, is_overcommitted, resource_name};
pub use scheduling::{node_selector, take_label_keys, toleration};
pub use security::PROFILE_BYTES_MAX;
pub use whole::{complete, quality_of_service};

use std::collections::HashSet;

use machinery::{json, names};

use crate::core::pod_volumes;
use schema::at::At;

/// Validates the overhead of Pods, whose errors kube-apiserver words as if it were limits.
pub fn overhead(amounts: At, at: At) {
    let limits = json!({"limits": (amounts.value.clone())});
    resources::amounts(at.with_value(&limits), container_resource);
}

/// Validates the spec of a Pod or of a Pod template.
pub fn validate_spec(spec: At) {
    let volumes = pod_volumes::valid_names(spec);
    let is_claim = |volume: &At| volume.has("persistentVolumeClaim") || volume.has("ephemeral");
    let targets = ["containers", "initContainers"].iter().flat_map(|kind| spec.items_of(kind));
    let pod = Pod {
        spec,
        volumes,
        volume_names: spec.texts("volumes", "name"),
        claim_volumes: spec.items_of("volumes").filter(is_claim).map(|volume| volume.text("name")).collect(),
        targets: targets.map(|container| container.text("name")).collect(),
        claims: resources::Claims::of(spec.value),
    };
    pod.containers();
    policies(spec);
    host::check(spec);
    scheduling_gates(spec);
    dns(spec);
    claims(spec);
    let system = spec.field("os");
    if !system.text("name").is_empty() {
        system.with_value(system.field("name").value).shown_as_json().one_of(&["linux", "windows"]);
    }
    security::check(spec);
    windows::host_processes(spec);
    host::user_namespace(spec);
    windows::system(spec);
    resources::of_pod(spec, &pod.claims);
    overhead(spec.field("overhead"), spec.field("overhead"));
    spec.items_of("tolerations").for_each(toleration);
    scheduling::affinity(spec.field("affinity"));
    scheduling::spread(spec);
    groups::scheduling_group(spec);
    groups::eviction_responders(spec);
}

struct Pod<'p, 'v> {
    spec: At<'p, 'v>,
    /// The names of the valid volumes.
    volumes: HashSet<&'v str>,
    volume_names: HashSet<&'v str>,
    /// The names of the volumes that are PersistentVolumeClaims.
    claim_volumes: HashSet<&'v str>,
    /// The names of the containers that ephemeral containers may target.
    targets: HashSet<&'v str>,
    claims: resources::Claims<'v>,
}

fn policies(spec: At) {
    spec.field("restartPolicy").require_text("");
    if let Some(policy) = spec.field_if_given("preemptionPolicy") {
        policy.shown_as_json().require_one_of(&["PreemptLowerPriority", "Never"]);
    }
    spec.field("dnsPolicy").require_text("");
}

fn scheduling_gates(spec: At) {
    let mut known = HashSet::new();
    for gate in spec.items_of("schedulingGates") {
        let name = gate.with_value(gate.field_or_empty("name").value);
        name.check_text(names::qualified_name);
        name.unique(&mut known);
    }
}

/// Each ResourceClaim must be referred to by name or made from a template.
fn claims(spec: At) {
    let mut known = HashSet::new();
    for claim in spec.items_of("resourceClaims") {
        let name = claim.field("name");
        if name.as_text().is_empty() {
            name.required("");
        } else if !known.insert(name.as_text()) {
            name.duplicate();
        } else {
            name.check_text(names::dns1123_label);
        }
        let sources = ["resourceClaimName", "resourceClaimTemplateName"].map(|name| claim.field(name));
        let shown = claim.shown_as_go("core.PodResourceClaim");
        match sources.iter().filter(|source| source.is_given()).count() {
            0 => shown.invalid("must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"),
            1 => {}
            _ => shown.invalid("at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"),
        }
        let given = sources.iter().filter(|source| source.is_given());
        given.for_each(|source| source.check_text(names::dns1123_subdomain));
    }
}

fn dns(spec: At) {
    const SERVERS_MAX: usize = 3;
    const SEARCHES_MAX: usize = 32;
    const SEARCH_CHARACTERS_MAX: usize = 2048;
    let config = spec.field("dnsConfig");
    let (servers, searches) = (config.field("nameservers"), config.field("searches"));
    if spec.text("dnsPolicy") == "None" {
        if !config.is_given() {
            config.required("must provide `dnsConfig` when `dnsPolicy` is None");
        } else if servers.items().len() == 0 {
            servers.required("must provide at least one DNS nameserver when `dnsPolicy` is None");
        }
    }
    servers.invalid_if(servers.items().len() > SERVERS_MAX, "must not have more than 3 nameservers");
    searches.invalid_if(searches.items().len() > SEARCHES_MAX, "must not have more than 32 search paths");
    let characters: usize = searches.items().map(|search| search.as_text().len() + 1).sum();
    if characters > SEARCH_CHARACTERS_MAX + 1 {
        searches.invalid("must not have more than 2048 characters (including spaces) in the search list");
    }
    for option in config.items_of("options").filter(|option| option.text("name").is_empty()) {
        option.required("must not be empty");
    }
}
