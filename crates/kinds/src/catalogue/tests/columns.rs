use crate::catalogue::CATALOGUE;
use crate::cells;
use machinery::{Release, Value, json};
use resource::builtin::GroupSource;
use resource::builtin::columns::Cell;

use super::{problem, row_named};

/// The cells of an object besides its age.
fn cells(api_version: &str, kind: &str, object: &Value) -> Vec<Value> {
    let columns = row_named(api_version, kind).columns_in(Release::V1_37).iter();
    columns.filter(|column| column.name != "Age").map(|column| column.cell(object, 0)).collect()
}

#[test]
fn every_function_is_used() {
    let lines = || CATALOGUE.sources().groups.iter().flat_map(|source| source.columns.lines());
    for (name, _) in cells::FUNCTIONS {
        assert!(lines().any(|line| line.contains(&format!("; {name};"))), "{name}");
    }
}

#[test]
fn bad_lines_are_refused_with_their_number() {
    for (lines, want) in [
        ("apps/Boat", "2: unknown kind apps/Boat"),
        ("apps/Deployment before=soon", "2: no release"),
        ("shared\n Ready", "3: no shared column"),
        (" A; string; .a", "2: no name, type, cell and description"),
        (" A; text; .a;", "2: unknown type text"),
        (" A; string narrow; .a;", "2: unknown word narrow"),
        (" A; string; a;", "2: unknown function a"),
        (" A; string; .a[;", "2: unterminated array"),
        (" A; string; .a | shout;", "2: unknown stage shout"),
        (" A; string; .a | or;", "2: unknown stage or"),
        (" A; string; .a | if .b[ c;", "2: unterminated array"),
        (" A; string; .a | join .b;", "2: unknown stage join .b"),
        (" A; string; .a | each .b;", "2: expected a text in quotes"),
        (" A; string; \"{.a;", "2: expected a text in quotes"),
        (" A; string; \"{.a\";", "2: a hole has no closing brace"),
    ] {
        let text = format!("# comment\n{lines}").leak();
        const KINDS: &str = "group apps 1 v1=1\napps/v1 deployments Deployment deployment namespaced";
        let found = problem(GroupSource { folder: "group", kinds: KINDS, columns: text, ..GroupSource::EMPTY });
        assert_eq!(found.unwrap_or_default(), format!("group/columns.txt:{want}"), "{lines}");
    }
}

#[test]
fn cells_are_made_in_stages() {
    let object = json!({"a": "x", "n": 3, "empty": "", "list": [{"a": "1", "n": 4}, {"b": "2"}], "map": {"k": "v", "l": "w"},
        "modes": ["ReadWriteMany", "ReadOnlyMany", "ReadWriteMany", "Other"], "texts": ["p", "q", "r", "s", "t"], "on": true});
    for (cell, want) in [
        (".a", json!("x")),
        (".list[*].n", json!(4)),
        (".z", json!("")),
        (".empty | or none", json!("none")),
        (".n | or none", json!(3)),
        (".z | int", json!(0)),
        (".z | flag", json!(false)),
        ("['list','map'] | count", json!(4)),
        (".z | age", json!("<unknown>")),
        (".n | duration", json!("3s")),
        ("\"a{.z|.n}b{.z|c}\"", json!("a3bc")),
        ("\"{.a}{\"-\"+.n}{\"-\"+.empty}{\"-\"+.z}\"", json!("x-3")),
        (".list[*] | each \"{.a|.b|0}\" | list", json!("1, 2")),
        (".texts[*] | join | if .on yes", json!("yes")),
        (".texts[*] | join | unless .on yes", json!("p,q,r,s,t")),
        (".texts[*] | three", json!("p,q,r + 2 more...")),
        (".map | pairs", json!("k=v,l=w")),
        (".modes[*] | modes", json!("ROX,RWX")),
        ("\" X \" | trim | lowercase", json!("x")),
    ] {
        assert_eq!(Cell::parse(CATALOGUE.sources(), cell).map(|cell| cell.value(&object, 0)), Ok(want), "{cell}");
    }
}

#[test]
fn shows_addresses_of_services() {
    let balanced = json!({"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}, {"hostname": "h"}]}});
    let ports = json!([{"port": 80, "protocol": "TCP"}, {"port": 443, "nodePort": 30443, "protocol": "TCP"}]);
    let cases = [
        (json!({"type": "ClusterIP"}), Value::Null, ["ClusterIP", "<none>", "<none>", "<none>", "<none>"]),
        (
            json!({"type": "NodePort", "clusterIPs": ["10.0.0.1"], "ports": ports, "selector": {"a": "b", "c": "d"}}),
            Value::Null,
            ["NodePort", "10.0.0.1", "<none>", "80/TCP,443:30443/TCP", "a=b,c=d"],
        ),
        (json!({"type": "LoadBalancer"}), Value::Null, ["LoadBalancer", "<none>", "<pending>", "<none>", "<none>"]),
        (
            json!({"type": "LoadBalancer", "externalIPs": ["9.9.9.9"]}),
            balanced,
            ["LoadBalancer", "<none>", "1.2.3.4,h,9.9.9.9", "<none>", "<none>"],
        ),
        (
            json!({"type": "ExternalName", "externalName": "x.io"}),
            Value::Null,
            ["ExternalName", "<none>", "x.io", "<none>", "<none>"],
        ),
    ];
    for (spec, status, wanted) in cases {
        let service = json!({"spec": spec, "status": status});
        assert_eq!(cells("v1", "Service", &service), wanted.map(Value::from));
    }
}

#[test]
fn shows_params_of_bindings() {
    let labels = json!({"selector": {"matchLabels": {"a": "2", "z": "1"}}, "parameterNotFoundAction": "Deny"});
    let expressions = json!({"selector": {"matchExpressions": [
        {"key": "k", "operator": "In", "values": ["b", "a"]},
        {"key": "q", "operator": "Exists"}
    ]}});
    let cases = [
        (Value::Null, "<unset>"),
        (json!({"name": "n"}), "*/n"),
        (json!({"name": "n", "namespace": "ns"}), "ns/n"),
        (
            labels,
            "&LabelSelector{MatchLabels:map[string]string{a: 2,z: 1,},MatchExpressions:[]LabelSelectorRequirement{},}",
        ),
        (
            expressions,
            "&LabelSelector{MatchLabels:map[string]string{},MatchExpressions:[]LabelSelectorRequirement{\
             LabelSelectorRequirement{Key:k,Operator:In,Values:[b a],},\
             LabelSelectorRequirement{Key:q,Operator:Exists,Values:[],},},}",
        ),
        (
            json!({"selector": {}}),
            "&LabelSelector{MatchLabels:map[string]string{},MatchExpressions:[]LabelSelectorRequirement{},}",
        ),
    ];
    for (reference, wanted) in cases {
        let mut binding = json!({"spec": {"policyName": "p"}});
        if reference != Value::Null {
            binding.set_at(&["spec", "paramRef"], reference);
        }
        let shown = cells("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", &binding);
        assert_eq!(shown, ["p", wanted].map(Value::from));
    }
}
