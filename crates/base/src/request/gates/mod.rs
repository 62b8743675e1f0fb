//! Feature gates: the names, stages and defaults that kube-apiserver has in each release.
//!
//! All its gates are known. Gates of features that this server does not have are accepted without effect.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use machinery::Release;

/// A line for each gate: its name, and its stage in 1.35, 1.36 and 1.37. `+` means on by default, `!` means locked to
/// the default, and a lone `-` means that the release does not have the gate.
const KNOWN: &str = include_str!("known.txt");

machinery::text_enum! {
    /// A feature gate with an effect in this server.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Feature {
        /// Deletion of objects that cannot be read, and errors that name them (KEP-3926).
        UnsafeDeletion = "AllowUnsafeMalformedObjectDeletion",
        Compression = "APIResponseCompression",
        /// CBOR in requests and responses, and in etcd for custom resources (KEP-4222).
        Cbor = "CBORServingAndStorage",
        ClusterTrustBundle = "ClusterTrustBundle",
        /// The page `/flagz` (KEP-4828).
        Flagz = "ComponentFlagz",
        /// The page `/statusz` (KEP-4827).
        Statusz = "ComponentStatusz",
        CompositePodGroup = "CompositePodGroup",
        /// Modes of impersonation (KEP-5284).
        ConstrainedImpersonation = "ConstrainedImpersonation",
        ExtendedResource = "DRAExtendedResource",
        WorkloadResourceClaims = "DRAWorkloadResourceClaims",
        EvictionRequest = "EvictionRequestAPI",
        /// Webhooks are not called for reviews of authentication and authorization.
        WebhooksWithoutReviews = "ExcludeAdmissionWebhookVirtualResources",
        GenericWorkload = "GenericWorkload",
        AutoscalerGeneration = "HPAGeneration",
        /// Admission is also configured by manifests, for whose objects some names are reserved (KEP-5793).
        AdmissionManifests = "ManifestBasedAdmissionControlConfig",
        MutatingAdmissionPolicy = "MutatingAdmissionPolicy",
        PodCertificateRequest = "PodCertificateRequest",
        GroupPreemptionPolicy = "PodGroupPreemptionPolicy",
        /// Lists and watches of a part of a collection (KEP-5866).
        ShardedLists = "ShardedListAndWatch",
        StorageVersionHash = "StorageVersionHash",
        StorageVersionMigrator = "StorageVersionMigrator",
        TopologyAwareScheduling = "TopologyAwareWorkloadScheduling",
        /// HTTP/2 connections are closed after a response to an unauthenticated client.
        ClosingAnonymous = "UnauthenticatedHTTP2DOSMitigation",
        VolumeLimitScaling = "VolumeLimitScaling",
        /// Watches that begin with the current state (KEP-3157).
        WatchList = "WatchList",
    }
}

const ALL_ALPHA: &str = "AllAlpha";
const ALL_BETA: &str = "AllBeta";

machinery::text_enum! {
    /// The stage of a feature.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Stage {
        Alpha = "ALPHA",
        Beta = "BETA",
        Stable = "",
        Deprecated = "DEPRECATED",
    }
}

/// A gate in one release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Gate {
    stage: Stage,
    on: bool,
    locked: bool,
}

impl Gate {
    fn parse(text: &str) -> Option<Gate> {
        let (text, locked) = text.strip_suffix('!').map_or((text, false), |rest| (rest, true));
        let (text, on) = text.strip_suffix('+').map_or((text, false), |rest| (rest, true));
        let stage = match text {
            "alpha" => Stage::Alpha,
            "beta" => Stage::Beta,
            "ga" => Stage::Stable,
            "deprecated" => Stage::Deprecated,
            _ => return None,
        };
        Some(Gate { stage, on, locked })
    }
}

/// All gates: the name, the gate in `release`, and whether a later release has it.
fn known(release: Release) -> impl Iterator<Item = (&'static str, Option<Gate>, bool)> {
    KNOWN.lines().map(move |line| {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap_or_default();
        let of: Vec<Option<Gate>> = Release::ALL.iter().zip(words).map(|(_, word)| Gate::parse(word)).collect();
        let at = Release::ALL.iter().position(|known| *known == release).unwrap_or_default();
        let is_later = of.iter().skip(at + 1).any(Option::is_some);
        (name, of.get(at).copied().flatten(), is_later)
    })
}

/// The feature gates of a server. Clones share their states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeatureGates {
    release: Release,
    states: Arc<BTreeMap<&'static str, (Stage, bool)>>,
}

impl Default for FeatureGates {
    fn default() -> FeatureGates {
        FeatureGates::of(Release::default())
    }
}

impl FeatureGates {
    /// The defaults of a release.
    pub fn of(release: Release) -> FeatureGates {
        static MADE: [OnceLock<FeatureGates>; Release::ALL.len()] = [const { OnceLock::new() }; Release::ALL.len()];
        let at = Release::ALL.iter().position(|known| *known == release).unwrap_or_default();
        MADE[at].get_or_init(|| FeatureGates::defaults(release)).clone()
    }

    fn defaults(release: Release) -> FeatureGates {
        let gates = known(release).filter_map(|(name, gate, _)| Some((name, gate?)));
        let mut states: BTreeMap<_, _> = gates.map(|(name, gate)| (name, (gate.stage, gate.on))).collect();
        states.insert(ALL_ALPHA, (Stage::Alpha, false));
        states.insert(ALL_BETA, (Stage::Beta, false));
        FeatureGates { release, states: Arc::new(states) }
    }

    /// The release that is served.
    pub fn release(&self) -> Release {
        self.release
    }

    /// Reads `Name=true` and `Name=false`; single names take precedence over `AllAlpha` and `AllBeta`. The error is
    /// kube-apiserver's.
    pub fn parse(given: &[String], release: Release) -> Result<FeatureGates, String> {
        let given = given.iter().map(|text| text.trim()).filter(|text| !text.is_empty());
        let mut given = given.map(read).collect::<Result<Vec<_>, _>>()?;
        given.sort_by_key(|(name, _)| ![ALL_ALPHA, ALL_BETA].contains(name));
        let mut gates = FeatureGates::of(release);
        for (name, on) in given {
            gates.set(name, on, release)?;
        }
        Ok(gates)
    }

    fn set(&mut self, name: &str, on: bool, release: Release) -> Result<(), String> {
        let all_of = |name| match name {
            ALL_ALPHA => Some(Stage::Alpha),
            ALL_BETA => Some(Stage::Beta),
            _ => None,
        };
        let states = Arc::make_mut(&mut self.states);
        if let Some(stage) = all_of(name) {
            for (own_stage, own) in states.values_mut().filter(|(own_stage, _)| *own_stage == stage) {
                (*own_stage, *own) = (stage, on);
            }
            return Ok(());
        }
        let unrecognized = || format!("unrecognized feature gate: {name}");
        let (name, gate, is_later) = known(release).find(|(known, ..)| *known == name).ok_or_else(unrecognized)?;
        match gate {
            None if is_later => Err(format!(
                "cannot set feature gate {name} to {on}, feature is PreAlpha at emulated version {release}, min compatibility version 1.{}",
                release.minor() - 1
            )),
            None => Err(unrecognized()),
            Some(gate) if gate.locked && gate.on != on => {
                Err(format!("cannot set feature gate {name} to {on}, feature is locked to {}", gate.on))
            }
            Some(gate) => {
                states.insert(name, (gate.stage, on));
                Ok(())
            }
        }
    }

    /// The names in `given` whose value differs from the default but has no effect on this server.
    pub fn without_effect<'a>(&self, given: &'a [String], release: Release) -> Vec<&'a str> {
        let defaults = FeatureGates::of(release);
        let names = given.iter().filter_map(|text| read(text.trim()).ok()).map(|(name, _)| name);
        names.filter(|name| Feature::parse(name).is_none() && self.is_on(name) != defaults.is_on(name)).collect()
    }

    /// Whether any release has a gate of this name.
    pub fn is_known(name: &str) -> bool {
        KNOWN.lines().any(|line| line.split_whitespace().next() == Some(name))
    }

    /// Whether a gate is on; one that the release does not have is off.
    pub fn is_on(&self, name: &str) -> bool {
        self.states.get(name).is_some_and(|(_, on)| *on)
    }

    pub fn has(&self, feature: Feature) -> bool {
        self.is_on(feature.as_str())
    }

    /// Every gate with its stage, and whether it is on.
    pub fn states(&self) -> impl Iterator<Item = (&'static str, Stage, bool)> {
        self.states.iter().map(|(name, (stage, on))| (*name, *stage, *on))
    }
}

/// Reads `Name=true`, or with its component, `kube:Name=true`.
fn read(text: &str) -> Result<(&str, bool), String> {
    let text = text.strip_prefix("kube:").unwrap_or(text);
    let (name, value) = text.split_once('=').ok_or_else(|| format!("missing bool value for {text}"))?;
    let (name, value) = (name.trim(), value.trim());
    match value {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok((name, true)),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok((name, false)),
        _ => {
            let quoted = machinery::value::quote(value);
            let why = format!("strconv.ParseBool: parsing {quoted}: invalid syntax");
            Err(format!("invalid value of {name}={value}, err: {why}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Feature::{Cbor, ConstrainedImpersonation, MutatingAdmissionPolicy};
    use super::*;

    fn parse(text: &str, release: Release) -> Result<FeatureGates, String> {
        FeatureGates::parse(&text.split(',').map(str::to_owned).collect::<Vec<_>>(), release)
    }

    #[test]
    fn feature_gate_lines_are_complete() {
        for line in KNOWN.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            assert_eq!(words.len(), 1 + Release::ALL.len(), "{line}");
            assert!(words[1..].iter().all(|word| *word == "-" || Gate::parse(word).is_some()), "{line}");
            assert!(words[1..].iter().any(|word| *word != "-"), "{line}");
        }
    }

    #[test]
    fn defaults_follow_the_release() {
        let [old, _, newest] = Release::ALL.map(FeatureGates::of);
        assert!(![ConstrainedImpersonation, MutatingAdmissionPolicy, Cbor].iter().any(|feature| old.has(*feature)));
        assert!(newest.has(ConstrainedImpersonation) && newest.has(MutatingAdmissionPolicy) && !newest.has(Cbor));
        assert_eq!(newest, FeatureGates::default());
    }

    #[test]
    fn gates_are_set_by_name() {
        let newest = Release::NEWEST;
        assert!(parse("kube:CBORServingAndStorage=true", newest).unwrap().has(Cbor));
        assert!(!parse("CBORServingAndStorage=F", newest).unwrap().has(Cbor));
        assert!(!parse("ConstrainedImpersonation=0", newest).unwrap().has(ConstrainedImpersonation));
        assert!(parse("MutatingAdmissionPolicy=true", Release::V1_35).unwrap().has(MutatingAdmissionPolicy));
        assert!(parse("AllAlpha=true", newest).unwrap().has(Cbor));
        assert!(!parse("CBORServingAndStorage=false,AllAlpha=true", newest).unwrap().has(Cbor));
        assert!(!parse("AllBeta=false", newest).unwrap().has(ConstrainedImpersonation));
    }

    #[test]
    fn gates_without_effect_are_named() {
        let given = ["AllBeta=false", "AllAlpha=true", "CBORServingAndStorage=true", "GenericWorkload=false"];
        let given = given.map(str::to_owned);
        let gates = FeatureGates::parse(&given, Release::NEWEST).unwrap();
        assert_eq!(gates.without_effect(&given, Release::NEWEST), ["AllAlpha"]);
        let other = ["kube:TaintTolerationComparisonOperators=true".to_owned()];
        let gates = FeatureGates::parse(&other, Release::NEWEST).unwrap();
        assert_eq!(gates.without_effect(&other, Release::NEWEST), ["TaintTolerationComparisonOperators"]);
    }

    #[test]
    fn refusals_match_kube_apiserver() {
        let cases = [
            ("Boats=true", Release::NEWEST, "unrecognized feature gate: Boats"),
            ("Boats", Release::NEWEST, "missing bool value for Boats"),
            (
                "Boats=2",
                Release::NEWEST,
                "invalid value of Boats=2, err: strconv.ParseBool: parsing \"2\": invalid syntax",
            ),
            (
                "WatchCacheInitializationPostStartHook=false",
                Release::V1_37,
                "cannot set feature gate WatchCacheInitializationPostStartHook to false, feature is locked to true",
            ),
            (
                "ShardedListAndWatch=true",
                Release::V1_35,
                "cannot set feature gate ShardedListAndWatch to true, feature is PreAlpha at emulated version 1.35, min compatibility version 1.34",
            ),
            ("APIServerTracing=true", Release::V1_37, "unrecognized feature gate: APIServerTracing"),
        ];
        for (text, release, want) in cases {
            assert_eq!(parse(text, release).unwrap_err(), want);
        }
        assert!(parse("WatchCacheInitializationPostStartHook=false", Release::V1_36).is_ok());
    }
}
