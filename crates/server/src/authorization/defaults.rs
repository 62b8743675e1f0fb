//! The roles and bindings that every server has from its first start (api-machinery 23.5).

use machinery::{Value, json};

/// Verbs, group and resources, each separated by blanks; the empty group is the core.
type Allowance = (&'static str, &'static str, &'static str);

const READ: &str = "get list watch";
const WRITE: &str = "create delete deletecollection patch update";
const ALL: &str = "create delete deletecollection get list patch update watch";

/// A ClusterRole. The texts `admin`, `edit` and `view` stand for the labels that bring rules into these roles.
struct Role {
    name: &'static str,
    /// Of which label it gathers the rules.
    gathers: &'static str,
    /// Which role gathers its rules.
    goes_into: &'static str,
    allowances: &'static [Allowance],
    /// Paths that may be read.
    urls: &'static str,
}

const ROLE: Role = Role { name: "", gathers: "", goes_into: "", allowances: &[], urls: "" };

static ROLES: [Role; 12] = [
    Role { name: "admin", gathers: "admin", ..ROLE },
    Role { name: "edit", gathers: "edit", goes_into: "admin", ..ROLE },
    Role { name: "view", gathers: "view", goes_into: "edit", ..ROLE },
    Role {
        name: "system:aggregate-to-admin",
        goes_into: "admin",
        allowances: &[
            ("create", "authorization.k8s.io", "localsubjectaccessreviews"),
            (ALL, "rbac.authorization.k8s.io", "rolebindings roles"),
        ],
        ..ROLE
    },
    Role { name: "system:aggregate-to-edit", goes_into: "edit", allowances: EDIT, ..ROLE },
    Role { name: "system:aggregate-to-view", goes_into: "view", allowances: VIEW, ..ROLE },
    Role {
        name: "system:auth-delegator",
        allowances: &[
            ("create", "authentication.k8s.io", "tokenreviews"),
            ("create", "authorization.k8s.io", "subjectaccessreviews"),
        ],
        ..ROLE
    },
    Role {
        name: "system:basic-user",
        allowances: &[
            ("create", "authorization.k8s.io", "selfsubjectaccessreviews selfsubjectrulesreviews"),
            ("create", "authentication.k8s.io", "selfsubjectreviews"),
        ],
        ..ROLE
    },
    Role {
        name: "system:discovery",
        urls: "/api /api/* /apis /apis/* /healthz /livez /openapi /openapi/* /readyz /version /version/",
        ..ROLE
    },
    Role {
        name: "system:monitoring",
        allowances: &[("get", "", "nodes/metrics")],
        urls: "/healthz /healthz/* /livez /livez/* /metrics /metrics/slis /readyz /readyz/*",
        ..ROLE
    },
    Role { name: "system:public-info-viewer", urls: "/healthz /livez /readyz /version /version/", ..ROLE },
    Role {
        name: "system:service-account-issuer-discovery",
        urls: "/.well-known/openid-configuration /.well-known/openid-configuration/ /openid/v1/jwks /openid/v1/jwks/",
        ..ROLE
    },
];

const EDIT: &[Allowance] = &[
    (READ, "", "pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy"),
    ("impersonate", "", "serviceaccounts"),
    (WRITE, "", "pods pods/attach pods/exec pods/portforward pods/proxy"),
    ("create", "", "pods/eviction"),
    (
        WRITE,
        "",
        "configmaps events persistentvolumeclaims replicationcontrollers replicationcontrollers/scale secrets \
         serviceaccounts services services/proxy",
    ),
    ("create", "", "serviceaccounts/token"),
    (
        WRITE,
        "apps",
        "daemonsets deployments deployments/rollback deployments/scale replicasets replicasets/scale statefulsets \
         statefulsets/scale",
    ),
    (WRITE, "autoscaling", "horizontalpodautoscalers"),
    (WRITE, "batch", "cronjobs jobs"),
    (
        WRITE,
        "extensions",
        "daemonsets deployments deployments/rollback deployments/scale ingresses networkpolicies replicasets \
         replicasets/scale replicationcontrollers/scale",
    ),
    (WRITE, "policy", "poddisruptionbudgets"),
    (WRITE, "networking.k8s.io", "ingresses networkpolicies"),
    (ALL, "coordination.k8s.io", "leases"),
];

const VIEW: &[Allowance] = &[
    (
        READ,
        "",
        "configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods replicationcontrollers \
         replicationcontrollers/scale serviceaccounts services services/status",
    ),
    (
        READ,
        "",
        "bindings events limitranges namespaces/status pods/log pods/status replicationcontrollers/status \
         resourcequotas resourcequotas/status",
    ),
    (READ, "", "namespaces"),
    (READ, "discovery.k8s.io", "endpointslices"),
    (
        READ,
        "apps",
        "controllerrevisions daemonsets daemonsets/status deployments deployments/scale deployments/status \
         replicasets replicasets/scale replicasets/status statefulsets statefulsets/scale statefulsets/status",
    ),
    (READ, "autoscaling", "horizontalpodautoscalers horizontalpodautoscalers/status"),
    (READ, "batch", "cronjobs cronjobs/status jobs jobs/status"),
    (
        READ,
        "extensions",
        "daemonsets daemonsets/status deployments deployments/scale deployments/status ingresses ingresses/status \
         networkpolicies replicasets replicasets/scale replicasets/status replicationcontrollers/scale",
    ),
    (READ, "policy", "poddisruptionbudgets poddisruptionbudgets/status"),
    (READ, "networking.k8s.io", "ingresses ingresses/status networkpolicies"),
];

/// ClusterRoleBindings: a role under its own name, and its groups.
const BINDINGS: [(&str, &[&str]); 6] = [
    ("cluster-admin", &["system:masters"]),
    ("system:basic-user", &["system:authenticated"]),
    ("system:discovery", &["system:authenticated"]),
    ("system:monitoring", &["system:monitoring"]),
    ("system:public-info-viewer", &["system:authenticated", "system:unauthenticated"]),
    ("system:service-account-issuer-discovery", &["system:serviceaccounts"]),
];

fn words(text: &str) -> Value {
    text.split_whitespace().map(Value::from).collect()
}

fn metadata(name: &str) -> Value {
    json!({
        "name": name,
        "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
        "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"}
    })
}

fn gathered_label(role: &str) -> String {
    format!("rbac.authorization.k8s.io/aggregate-to-{role}")
}

impl Role {
    fn to_value(&self) -> Value {
        let mut metadata = metadata(self.name);
        if !self.goes_into.is_empty() {
            metadata.set_at(&["labels", &gathered_label(self.goes_into)], Value::from("true"));
        }
        if !self.gathers.is_empty() {
            let labels: Value = [(gathered_label(self.gathers).as_str(), Value::from("true"))].into();
            let rule = json!({"clusterRoleSelectors": [{"matchLabels": labels}]});
            return json!({"metadata": metadata, "aggregationRule": rule, "rules": (Value::Null)});
        }
        let resources = |(verbs, group, resources): &Allowance| -> Value {
            json!({"apiGroups": [(*group)], "resources": (words(resources)), "verbs": (words(verbs))})
        };
        let mut rules: Vec<Value> = vec![];
        if !self.urls.is_empty() {
            rules.push(json!({"nonResourceURLs": (words(self.urls)), "verbs": ["get"]}));
        }
        rules.extend(self.allowances.iter().map(resources));
        json!({"metadata": metadata, "rules": (Value::Array(rules))})
    }
}

/// The ClusterRoles.
pub fn cluster_roles() -> Vec<Value> {
    let everything = json!([
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
        {"nonResourceURLs": ["*"], "verbs": ["*"]}
    ]);
    let mut roles = vec![json!({"metadata": (metadata("cluster-admin")), "rules": everything})];
    roles.extend(ROLES.iter().map(Role::to_value));
    roles
}

/// The ClusterRoleBindings.
pub fn cluster_role_bindings() -> Vec<Value> {
    let group = |name: &&str| -> Value { json!({"apiGroup": (super::GROUP), "kind": "Group", "name": (*name)}) };
    let binding = |(role, groups): &(&str, &[&str])| {
        let subjects: Vec<Value> = groups.iter().map(group).collect();
        json!({
            "metadata": (metadata(role)),
            "roleRef": {"apiGroup": (super::GROUP), "kind": "ClusterRole", "name": (*role)},
            "subjects": (Value::Array(subjects))
        })
    };
    BINDINGS.iter().map(binding).collect()
}
