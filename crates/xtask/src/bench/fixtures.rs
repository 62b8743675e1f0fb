//! Definitions and objects of a typical size and structure.
/// The path of CustomResourceDefinitions.
pub const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// The number of label values, which the objects share evenly.
pub const SHARDS: usize = 50;
/// The content types of patches and applies.
pub const MERGE_PATCH: &str = "application/merge-patch+json";
pub const APPLY_PATCH: &str = "application/apply-patch+yaml";

/// A kind of custom resource.
#[derive(Clone)]
pub struct Kind {
    pub group: String,
    pub plural: String,
}

impl Kind {
    pub fn definition_name(&self) -> String {
        format!("{}.{}", self.plural, self.group)
    }

    /// `Widgets` for `widgets`.
    fn kind(&self) -> String {
        let (head, tail) = self.plural.split_at(1);
        format!("{}{tail}", head.to_uppercase())
    }

    pub fn collection(&self) -> String {
        format!("/apis/{}/v1/namespaces/default/{}", self.group, self.plural)
    }

    pub fn item(&self, i: usize) -> String {
        format!("{}/{}", self.collection(), name(i))
    }
}

pub fn name(i: usize) -> String {
    format!("w-{i:06}")
}

fn definition_of(kind: &Kind, spec: &str) -> String {
    let (group, plural, name) = (&kind.group, &kind.plural, kind.kind());
    let status = r#"{"type":"object","properties":{"phase":{"type":"string"},"observedGeneration":{"type":"integer","format":"int64"},"readyReplicas":{"type":"integer","minimum":0},"conditions":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["type"],"items":{"type":"object","required":["type","status"],"properties":{"type":{"type":"string"},"status":{"type":"string","enum":["True","False","Unknown"]},"reason":{"type":"string"},"message":{"type":"string","maxLength":32768},"lastTransitionTime":{"type":"string","format":"date-time"}}}}}}"#;
    let schema = format!(
        r#"{{"openAPIV3Schema":{{"type":"object","required":["spec"],"properties":{{"spec":{spec},"status":{status}}}}}}}"#
    );
    let columns = r#"[{"name":"Replicas","type":"integer","jsonPath":".spec.replicas"},{"name":"Phase","type":"string","jsonPath":".status.phase"}]"#;
    format!(
        r#"{{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{{"name":"{plural}.{group}"}},"spec":{{"group":"{group}","scope":"Namespaced","names":{{"plural":"{plural}","singular":"{plural}one","kind":"{name}","listKind":"{name}List"}},"versions":[{{"name":"v1","served":true,"storage":true,"subresources":{{"status":{{}}}},"additionalPrinterColumns":{columns},"schema":{schema}}}]}}}}"#
    )
}

/// The schema of a typical spec: scalars with bounds, an enum, maps, lists with keys, a nested object, defaults.
const SPEC: &str = r#"{"type":"object","required":["image"],"properties":{"replicas":{"type":"integer","format":"int32","minimum":0,"default":1},"image":{"type":"string","minLength":1,"maxLength":255,"pattern":"^[a-z0-9./:_-]+$"},"paused":{"type":"boolean","default":false},"description":{"type":"string"},"schedule":{"type":"string"},"strategy":{"type":"object","properties":{"type":{"type":"string","enum":["RollingUpdate","Recreate"]},"maxSurge":{"x-kubernetes-int-or-string":true}}},"selector":{"type":"object","additionalProperties":{"type":"string"}},"ports":{"type":"array","maxItems":64,"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],"items":{"type":"object","required":["name","port"],"properties":{"name":{"type":"string"},"port":{"type":"integer","minimum":1,"maximum":65535},"protocol":{"type":"string","enum":["TCP","UDP"],"default":"TCP"}}}},"env":{"type":"array","items":{"type":"object","required":["name"],"properties":{"name":{"type":"string"},"value":{"type":"string"}}}},"resources":{"type":"object","properties":{"limits":{"type":"object","additionalProperties":{"x-kubernetes-int-or-string":true}},"requests":{"type":"object","additionalProperties":{"x-kubernetes-int-or-string":true}}}},"secretRef":{"type":"object","properties":{"name":{"type":"string"},"namespace":{"type":"string"}}}}}"#;

/// The definition of a typical kind.
pub fn definition(kind: &Kind) -> String {
    definition_of(kind, SPEC)
}

/// A definition of about 13 KB: sixty fields with descriptions, some nested. All kinds have different schemas, since the
/// server would store and compile equal ones only once.
pub fn large_definition(kind: &Kind) -> String {
    let plural = &kind.plural;
    let field = |i: usize| {
        let description = format!("What this field of {plural} is about, as it is said in generated schemas.");
        format!(
            r#""field{i:02}":{{"type":"object","description":"{description}","properties":{{"name":{{"type":"string","maxLength":63}},"value":{{"type":"integer","minimum":0}}}}}}"#
        )
    };
    let fields: Vec<String> = (0..60).map(field).collect();
    definition_of(kind, &format!(r#"{{"type":"object","properties":{{{}}}}}"#, fields.join(",")))
}

/// An object of a typical kind with `size` bytes, or more if its fields need more.
pub fn object(kind: &Kind, i: usize, size: usize) -> String {
    let bare = object_with(kind, i, "").len();
    let padding = size.saturating_sub(bare);
    let text = "lorem ipsum ".repeat(padding / 12 + 1);
    object_with(kind, i, &text[..padding])
}

/// An object that another one owns.
pub fn dependent(kind: &Kind, i: usize, owner: &Kind, uid: &str) -> String {
    let (group, owner_kind, name) = (&owner.group, owner.kind(), name(0));
    let owners = format!(
        r#""ownerReferences":[{{"apiVersion":"{group}/v1","kind":"{owner_kind}","name":"{name}","uid":"{uid}"}}],"labels":"#
    );
    object(kind, i, 0).replacen("\"labels\":", &owners, 1)
}

fn object_with(kind: &Kind, i: usize, description: &str) -> String {
    let (group, name, shard) = (&kind.group, name(i), i % SHARDS);
    let spec = format!(
        r#"{{"replicas":3,"image":"registry.example.com/team/app:{i}","description":"{description}","schedule":"*/5 * * * *","strategy":{{"type":"RollingUpdate","maxSurge":"25%"}},"selector":{{"app":"bench","tier":"web"}},"ports":[{{"name":"http","port":8080}},{{"name":"metrics","port":9090,"protocol":"TCP"}}],"env":[{{"name":"LOG_LEVEL","value":"info"}},{{"name":"REGION","value":"eu-west-1"}}],"resources":{{"limits":{{"cpu":"500m","memory":"256Mi"}},"requests":{{"cpu":1,"memory":"128Mi"}}}}}}"#
    );
    format!(
        r#"{{"apiVersion":"{group}/v1","kind":"{}","metadata":{{"name":"{name}","labels":{{"app":"bench","shard":"s-{shard}"}}}},"spec":{spec}}}"#,
        kind.kind()
    )
}

/// A merge patch of a status.
pub fn status(i: usize) -> String {
    format!(
        r#"{{"status":{{"phase":"Running","observedGeneration":1,"readyReplicas":{i},"conditions":[{{"type":"Ready","status":"True","reason":"AllReady","message":"round {i}","lastTransitionTime":"2026-01-01T00:00:00Z"}}]}}}}"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_objects_have_requested_size() {
        let kind = Kind { group: "b1.bench.example.com".to_owned(), plural: "widgets".to_owned() };
        assert_eq!(object(&kind, 7, 1500).len(), 1500);
        assert!(object(&kind, 7, 0).len() < 1000);
        assert!((12_500..14_500).contains(&large_definition(&kind).len()), "{}", large_definition(&kind).len());
    }
}
