//! Which controllers run: `--controllers` of kube-controller-manager, with its names.

/// A controller that can be switched.
struct SwitchedController {
    name: &'static str,
    /// The name of older releases.
    alias: &'static str,
    /// Runs unless it is named with a minus in front.
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

/// Controllers that put objects into every namespace are off: without Pods nothing needs them, and a namespace is as empty as
/// kube-apiserver alone leaves it. So is the one that only reports type errors of policies, since it writes to every policy.
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

/// The choice of controllers, and what they go by.
#[derive(Clone, Debug, Default)]
pub struct Controllers {
    /// As given: `*`, `name` or `-name`; aliases are resolved.
    chosen: Vec<String>,
    /// Time between the last write of an event and its end; zero for no end.
    pub event_ttl: std::time::Duration,
    /// Run the controllers without asking who else does.
    pub alone: bool,
    /// The authority of the server's certificate, PEM.
    pub root_authority: String,
    /// Signs certificates of clients, if the server has the key of a certificate authority.
    pub signer: Option<super::CertificateSigner>,
}

impl Controllers {
    /// `*` stands for all that are on by default, `name` turns one on, `-name` turns one off; nothing is `*`. The error
    /// is one line.
    pub fn parse(list: &[String]) -> Result<Controllers, String> {
        let resolve = |given: &String| {
            let (sign, name) = given.strip_prefix('-').map_or(("", given.as_str()), |name| ("-", name));
            match KNOWN.iter().find(|known| known.name == name || known.alias == name) {
                Some(known) => Ok(format!("{sign}{}", known.name)),
                None if given == "*" => Ok(given.clone()),
                None => {
                    let known: Vec<&str> = KNOWN.iter().map(|known| known.name).collect();
                    let known = known.join(", ");
                    Err(format!("{name:?} is not in the list of known controllers; there is: {known}"))
                }
            }
        };
        let chosen = list.iter().map(resolve).collect::<Result<_, _>>()?;
        Ok(Controllers { chosen, ..Controllers::default() })
    }

    /// Whether a controller creates the ServiceAccount `default` in each namespace.
    pub fn creates_accounts(&self) -> bool {
        self.run(SERVICE_ACCOUNT)
    }

    /// Whether a controller is to run. What is named first counts.
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
