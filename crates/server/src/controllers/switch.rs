//! The selection of controllers: the flag `--controllers` of kube-controller-manager, with its names.

use std::sync::Arc;

struct SwitchedController {
    name: &'static str,
    /// The name in older releases.
    alias: &'static str,
    /// Whether it runs unless it is disabled.
    by_default: bool,
}

pub const GARBAGE_COLLECTOR: &str = "garbage-collector-controller";
pub const MIGRATOR: &str = "storage-version-migrator-controller";
pub const AGGREGATION: &str = "clusterrole-aggregation-controller";
pub const NAMESPACE: &str = "namespace-controller";
pub const QUOTAS: &str = "resourcequota-controller";
pub const SERVICE_ACCOUNT: &str = "serviceaccount-controller";
pub const TOKEN_SECRETS: &str = "serviceaccount-token-controller";
pub const POLICY_STATUS: &str = "validatingadmissionpolicy-status-controller";
pub const SIGNING: &str = "certificatesigningrequest-signing-controller";
pub const ROOT_AUTHORITY: &str = "root-ca-certificate-publisher-controller";

/// Controllers that create objects in every namespace are off by default: only Pods need these objects, and tests may expect
/// namespaces to be as empty as with kube-apiserver alone. The controller that reports type errors of policies is off since
/// it writes to every policy.
static KNOWN: [SwitchedController; 10] = [
    SwitchedController { name: SIGNING, alias: "csrsigning", by_default: true },
    SwitchedController { name: AGGREGATION, alias: "clusterrole-aggregation", by_default: true },
    SwitchedController { name: GARBAGE_COLLECTOR, alias: "garbagecollector", by_default: true },
    SwitchedController { name: NAMESPACE, alias: "namespace", by_default: true },
    SwitchedController { name: POLICY_STATUS, alias: "validatingadmissionpolicy-status", by_default: false },
    SwitchedController { name: QUOTAS, alias: "resourcequota", by_default: true },
    SwitchedController { name: ROOT_AUTHORITY, alias: "root-ca-cert-publisher", by_default: false },
    SwitchedController { name: SERVICE_ACCOUNT, alias: "serviceaccount", by_default: false },
    SwitchedController { name: MIGRATOR, alias: "svm", by_default: true },
    SwitchedController { name: TOKEN_SECRETS, alias: "serviceaccount-token", by_default: true },
];

/// The garbage collector's treatment of an object whose owner does not exist, and whose deletion was not observed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AbsentOwners {
    /// The object is deleted after a grace period, as kube-controller-manager does.
    #[default]
    Collect,
    /// The object stays: its owner was not captured with it.
    Ignore,
}

/// The selection of controllers and their configuration.
#[derive(Clone, Debug, Default)]
pub struct Controllers {
    /// The list of the flag: `*`, `name` or `-name`, with aliases resolved.
    chosen: Vec<String>,
    /// Time between the last write of an Event and its expiry; zero for no expiry.
    pub event_ttl: std::time::Duration,
    pub absent_owners: AbsentOwners,
    /// Whether the controllers run without leader election.
    pub alone: bool,
    /// The CA bundle of the server's certificate, in PEM format.
    pub root_authority: String,
    /// In a workspace of a shared store: this server among those that run controllers.
    pub membership: Option<Arc<super::Membership>>,
    /// Signs certificates of clients, if the server has the key of a certificate authority.
    pub signer: Option<super::CertificateSigner>,
}

impl Controllers {
    /// No controller that can be switched.
    pub fn none() -> Controllers {
        // a list without `*` enables only those that it names
        Controllers { chosen: KNOWN.iter().map(|known| format!("-{}", known.name)).collect(), ..Controllers::default() }
    }

    /// Parses the list of the flag: `*` stands for all that are on by default, `name` enables one, `-name` disables one; an
    /// empty list is `*`. Fails with a one-line message.
    pub fn parse(list: &[String]) -> Result<Controllers, String> {
        let resolve = |given: &String| {
            let (sign, name) = given.strip_prefix('-').map_or(("", given.as_str()), |name| ("-", name));
            match KNOWN.iter().find(|known| known.name == name || known.alias == name) {
                Some(known) => Ok(format!("{sign}{}", known.name)),
                None if given == "*" => Ok(given.clone()),
                None => {
                    let known: Vec<&str> = KNOWN.iter().map(|known| known.name).collect();
                    let known = known.join(", ");
                    Err(format!("{name:?} is not in the list of known controllers: {known}"))
                }
            }
        };
        let chosen = list.iter().map(resolve).collect::<Result<_, _>>()?;
        Ok(Controllers { chosen, ..Controllers::default() })
    }

    /// The controllers of a workspace. They sign no certificates: a client certificate names the same user in every API of the
    /// server, so the owner of a workspace could issue one for a user of `default`.
    pub fn of_workspace(&self, membership: Option<Arc<super::Membership>>) -> Controllers {
        // every field is named, so that a new one is not inherited unseen
        let Controllers { chosen, event_ttl, absent_owners, alone, root_authority, membership: _, signer: _ } =
            self.clone();
        Controllers { chosen, event_ttl, absent_owners, alone, root_authority, membership, signer: None }
    }

    /// The same without any controller that can be switched, and without expiry.
    pub fn at_rest(self) -> Controllers {
        Controllers { chosen: Controllers::none().chosen, event_ttl: std::time::Duration::ZERO, ..self }
    }

    /// Whether a controller creates the ServiceAccount `default` in each namespace.
    pub fn creates_accounts(&self) -> bool {
        self.run(SERVICE_ACCOUNT)
    }

    /// Whether a controller is enabled. The first entry of the list that names it counts.
    pub fn run(&self, name: &str) -> bool {
        let named = self.chosen.iter().find(|given| given.trim_start_matches('-') == name);
        match named {
            Some(given) => !given.starts_with('-'),
            None if self.chosen.is_empty() || self.chosen.iter().any(|given| given == "*") => {
                KNOWN.iter().any(|known| known.name == name && known.by_default)
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controllers_flag_matches_upstream() {
        let cases = [
            ("", true),
            ("*", true),
            ("-garbagecollector", false),
            ("*,-garbage-collector-controller", false),
            ("garbagecollector", true),
            ("garbagecollector,-garbagecollector", true),
            ("-garbagecollector,*", false),
        ];
        for (given, want) in cases {
            let list: Vec<String> = given.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
            assert_eq!(Controllers::parse(&list).unwrap().run(GARBAGE_COLLECTOR), want, "{given}");
        }
        let off = |given: &str| !Controllers::parse(&[given.to_owned()]).unwrap().run(SERVICE_ACCOUNT);
        assert!(off("*") && off("garbagecollector") && !off("serviceaccount"));
        let error = Controllers::parse(&["-sweeper".to_owned()]).unwrap_err();
        assert!(error.starts_with("\"sweeper\" is not in the list of known controllers"), "{error}");
    }
}
