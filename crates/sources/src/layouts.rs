//! The layouts of captures: which files of a bundle are logs, and of which kind objects are that don't say so themselves.
//!
//! Everything else about a layout is the same for all tools: objects say what they are.

/// A log of a container.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LogKey {
    pub namespace: String,
    pub pod: String,
    pub container: String,
    pub run: Run,
}

/// Which run of a container a log is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Run {
    Current,
    /// The one before, which `kubectl logs -p` shows.
    Previous,
}

/// The ends of the paths of logs. Must-gather, crust-gather, Troubleshoot, and Rancher's support bundles, in this order.
const LOGS: [(&str, Run); 9] = [
    ("namespaces/{namespace}/pods/{pod}/{container}/*/logs/current.log", Run::Current),
    ("namespaces/{namespace}/pods/{pod}/{container}/*/logs/previous.log", Run::Previous),
    ("namespaces/{namespace}/v1/pod/{pod}/{container}/current.log", Run::Current),
    ("namespaces/{namespace}/v1/pod/{pod}/{container}/previous.log", Run::Previous),
    ("cluster-resources/pods/logs/{namespace}/{pod}/{container}-previous.log", Run::Previous),
    ("cluster-resources/pods/logs/{namespace}/{pod}/{container}.log", Run::Current),
    ("logs/{namespace}/{pod}/{container}.log.1", Run::Previous),
    ("logs/{namespace}/{pod}/{container}-previous.log", Run::Previous),
    ("logs/{namespace}/{pod}/{container}.log", Run::Current),
];

/// Files of Troubleshoot with lists whose items have no kind, by their name or that of their folder: the `apiVersion` and
/// the kind of the items.
const TROUBLESHOOT: &str = include_str!("troubleshoot.txt");

/// The log that a file is, by its path.
pub fn log(path: &str) -> Option<LogKey> {
    LOGS.iter().find_map(|(pattern, run)| log_of(pattern, *run, path))
}

fn log_of(pattern: &str, run: Run, path: &str) -> Option<LogKey> {
    let mut key = LogKey { namespace: String::new(), pod: String::new(), container: String::new(), run };
    let mut names = path.rsplit('/');
    for wanted in pattern.rsplit('/') {
        let name = names.next()?;
        let Some((before, rest)) = wanted.split_once('{') else {
            if wanted != "*" && wanted != name {
                return None;
            }
            continue;
        };
        let (field, after) = rest.split_once('}')?;
        let value = name.strip_prefix(before)?.strip_suffix(after).filter(|value| !value.is_empty())?;
        let field = match field {
            "namespace" => &mut key.namespace,
            "pod" => &mut key.pod,
            _ => &mut key.container,
        };
        value.clone_into(field);
    }
    Some(key)
}

/// The `apiVersion` and the kind of objects that have none, by the path of their file.
pub fn kind(path: &str) -> Option<(&'static str, &'static str)> {
    let (_, path) = path.rsplit_once("cluster-resources/")?;
    let first = path.split(['/', '.']).next()?.to_ascii_lowercase();
    let item = TROUBLESHOOT.lines().find_map(|line| line.strip_prefix(first.as_str())?.strip_prefix(' '))?;
    item.split_once(' ')
}

/// Whether a file has an object again, in another version: those of Velero's backups below `resources/KIND.GROUP/VERSION`.
pub fn is_repeated(path: &str) -> bool {
    let mut names = path.split('/').skip_while(|name| *name != "resources").skip(2);
    let is_scope = |name: &str| name == "namespaces" || name == "cluster";
    matches!((names.next(), names.next()), (Some(version), Some(scope)) if !is_scope(version) && is_scope(scope))
}

/// The plural of a kind that no definition names: a name of the path that looks like it, or what English makes of the kind.
pub fn plural(path: &str, kind: &str) -> String {
    let kind = kind.to_ascii_lowercase();
    let plural = match kind.as_str() {
        "podmetrics" => "pods".to_owned(),
        "nodemetrics" => "nodes".to_owned(),
        kind if kind.ends_with('y') && !["ay", "ey", "oy", "uy"].iter().any(|end| kind.ends_with(end)) => {
            format!("{}ies", &kind[..kind.len() - 1])
        }
        kind if ["s", "x", "z", "ch", "sh"].iter().any(|end| kind.ends_with(end)) => format!("{kind}es"),
        kind => format!("{kind}s"),
    };
    let names = path.rsplit('/').filter_map(|name| name.split('.').next()).map(str::to_ascii_lowercase);
    // the last letter may change: policies
    let stem: String = kind.chars().take(kind.chars().count().saturating_sub(1)).collect();
    let is_like = |name: &String| name.starts_with(&stem) && name.len() <= kind.len() + 3 && name.ends_with('s');
    names.filter(|name| *name != kind).find(is_like).unwrap_or(plural)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_are_found_by_their_paths() {
        for (path, want) in [
            ("must-gather.local.1/quay-io/namespaces/n/pods/p/c/c/logs/current.log", "n p c Current"),
            ("x/namespaces/n/pods/p/c/c/logs/previous.log", "n p c Previous"),
            ("x/namespaces/n/pods/p/c/c/logs/previous.insecure.log", ""),
            ("dump/namespaces/n/v1/pod/p/c/current.log", "n p c Current"),
            ("dump/namespaces/n/v1/pod/p/c/previous.log", "n p c Previous"),
            ("bundle/cluster-resources/pods/logs/n/p/c.log", "n p c Current"),
            ("bundle/cluster-resources/pods/logs/n/p/c-previous.log", "n p c Previous"),
            ("supportbundle_1/logs/n/p/c.log", "n p c Current"),
            ("supportbundle_1/logs/n/p/c.log.1", "n p c Previous"),
            ("c.log", ""),
            ("logs/n/p/.log", ""),
        ] {
            let found = log(path).map(|key| format!("{} {} {} {:?}", key.namespace, key.pod, key.container, key.run));
            assert_eq!(found.unwrap_or_default(), want, "{path}");
        }
    }

    #[test]
    fn other_versions_are_repeated() {
        for (path, want) in [
            ("resources/a.g.io/namespaces/n/x.json", false),
            ("resources/a.g.io/cluster/x.json", false),
            ("b/resources/a.g.io/v1-preferredversion/namespaces/n/x.json", true),
            ("b/resources/a.g.io/v1beta1/cluster/x.json", true),
            ("cluster-resources/pods/n.json", false),
        ] {
            assert_eq!(is_repeated(path), want, "{path}");
        }
    }

    #[test]
    fn kinds_and_plurals_follow_from_paths() {
        for (path, want) in [
            ("b/cluster-resources/pods/default.json", "Pod"),
            ("b/cluster-resources/nodes.json", "Node"),
            ("b/cluster-resources/clusterRoleBindings.json", "ClusterRoleBinding"),
            ("b/cluster-resources/pods-errors.json", ""),
            ("b/pods.json", ""),
        ] {
            assert_eq!(kind(path).map_or("", |(_, kind)| kind), want, "{path}");
        }
        for (path, kind, want) in [
            ("x.yaml", "Widget", "widgets"),
            ("x.yaml", "Policy", "policies"),
            ("x.yaml", "Gateway", "gateways"),
            ("x.yaml", "DNS", "dnses"),
            ("x.yaml", "Mesh", "meshes"),
            ("x.yaml", "PodMetrics", "pods"),
            ("namespaces/n/example.com/widgetry.yaml", "Widget", "widgets"),
            ("namespaces/n/example.com/sheepes/a.yaml", "Sheep", "sheepes"),
            ("yamls/cluster/example.com/v1/widget.yaml", "Widget", "widgets"),
        ] {
            assert_eq!(plural(path, kind), want, "{path} {kind}");
        }
    }
}
