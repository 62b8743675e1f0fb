//! How kube-apiserver lays objects out in etcd: keys, and values as JSON or protobuf.
//!
//! Built-in kinds are stored as protobuf in the `k8s\0` envelope, CRDs and custom resources as JSON with a final
//! newline. Either encoding is read for any kind. CRDs are written as v1beta1, the version that kube-apiserver
//! prefers because it is shorter, although it serves only v1; v1 is read too.

use std::sync::Arc;

use bytes::Bytes;
use machinery::{Text, Value, cbor, protobuf};
use objects::{Key, Keys, Layout, Opened, Place, Storage, Transform};
use store::Store;

use crate::catalogue::CATALOGUE;
use resource::builtin::{BuiltIn, DEFINITION_GROUP, DEFINITIONS};
use resource::group_version;

/// A storage that kube-apiserver can share, since its keys and values are the same. `prefix` has no trailing slash.
/// `form` is the encoding in which custom resources are written; both encodings are read.
pub fn upstream_storage(store: Arc<dyn Store>, prefix: &str, form: CustomForm) -> Storage {
    Storage { store, layout: upstream_layout(prefix, form) }
}

fn upstream_layout(prefix: &str, form: CustomForm) -> Layout {
    Layout::new(Arc::new(UpstreamKeys { prefix: format!("{prefix}/") })).then(Arc::new(StorageForm(form)))
}

struct UpstreamKeys {
    prefix: String,
}

/// The built-in kinds that are not stored like custom resources.
fn typed_kinds() -> impl Iterator<Item = &'static BuiltIn> {
    CATALOGUE.stored_kinds().filter(|row| !row.has_own_server)
}

/// The built-in kind to which a key without the prefix belongs, and the rest of the key.
fn built_in_under(text: &str) -> Option<(&'static BuiltIn, &str)> {
    typed_kinds().find_map(|row| Some((row, text.strip_prefix(row.upstream_folder())?.strip_prefix('/')?)))
}

fn typed_kind(group: &str, plural: &str) -> Option<&'static BuiltIn> {
    typed_kinds().find(|row| row.group == group && row.plural == plural)
}

fn is_built_in(group: &str, plural: &str) -> bool {
    CATALOGUE.stored_kinds().any(|built_in| built_in.group == group && built_in.plural == plural)
}

/// The key under which kube-apiserver stores an object by default.
pub fn upstream_key(key: &Key) -> String {
    format!("/registry/{}", upstream_path(key))
}

/// The part of an object's key in kube-apiserver that follows the prefix.
pub fn upstream_path(key: &Key) -> String {
    let Key { group, plural, path } = key;
    match typed_kind(group, plural) {
        None => format!("{group}/{plural}/{path}"),
        Some(row) => row.upstream_path(path),
    }
}

impl Keys for UpstreamKeys {
    fn to_bytes(&self, key: &Key) -> Bytes {
        Bytes::from(format!("{}{}", self.prefix, upstream_path(key)))
    }

    fn parse(&self, bytes: &[u8]) -> Option<Key> {
        let text = std::str::from_utf8(bytes).ok()?.strip_prefix(&self.prefix)?;
        let (first, rest) = text.split_once('/')?;
        let (group, plural, path) = match first.contains('.') {
            true => {
                let (plural, path) = rest.split_once('/')?;
                if typed_kind(first, plural).is_some() || path.matches('/').count() > 1 {
                    return None;
                }
                (Text::from(first), Text::from(plural), path)
            }
            false => {
                let (built_in, path) = built_in_under(text)?;
                if path.matches('/').count() != usize::from(built_in.namespaced) {
                    return None;
                }
                (Text::new_static(built_in.group), Text::new_static(built_in.plural), path)
            }
        };
        let whole = path.split('/').all(|part| !part.is_empty());
        whole.then(|| Key { group, plural, path: path.into() })
    }
}

/// The encoding in which custom resources are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CustomForm {
    #[default]
    Json,
    /// CBOR, as kube-apiserver writes it with the feature gate `CBORServingAndStorage`.
    Cbor,
}

/// Encodes and decodes values.
struct StorageForm(CustomForm);

impl StorageForm {
    /// Whether values under the key are written as CBOR.
    fn is_cbor(&self, place: &Place) -> bool {
        let Key { group, plural, .. } = &place.key;
        self.0 == CustomForm::Cbor && !is_built_in(group, plural)
    }
}

/// The built-in kind of a key, if its values are protobuf.
fn typed(place: &Place) -> Option<&'static BuiltIn> {
    let Key { group, plural, .. } = &place.key;
    typed_kind(group, plural)
}

fn is_definition(place: &Place) -> bool {
    place.key.group == DEFINITION_GROUP && place.key.plural == DEFINITIONS
}

fn decode(bytes: &[u8]) -> Result<Value, String> {
    machinery::value::decode(bytes).map_err(|error| format!("it is neither JSON nor protobuf ({error})"))
}

impl Transform for StorageForm {
    fn seal(&self, place: &Place, value: Bytes) -> Result<Bytes, String> {
        if typed(place).is_some()
            && let Some(message) = protobuf::encode(&decode(&value)?)
        {
            return Ok(message.into());
        }
        if is_definition(place) {
            let beta = CATALOGUE.beta_definition().to_shown(decode(&value)?);
            return Ok((beta.to_json() + "\n").into());
        }
        if self.is_cbor(place) {
            let object = decode(&value)?;
            // kube-apiserver limits the CBOR that it decodes, but not the JSON
            if cbor::is_readable(&object) {
                return Ok(cbor::encode(&object).into());
            }
        }
        Ok([&value[..], b"\n"].concat().into())
    }

    fn open(&self, place: &Place, value: Bytes) -> Result<Opened, String> {
        if value.starts_with(&cbor::SELF_DESCRIBED) {
            let object = cbor::decode_stored(&value).map_err(|error| error.to_string())?;
            let opened = self.open(place, object.to_json().into())?;
            return Ok(Opened { stale: !self.is_cbor(place), ..opened });
        }
        let enveloped = value.starts_with(&protobuf::MAGIC);
        if let Some(built_in) = typed(place) {
            let mut object = match enveloped {
                true => protobuf::decode(&value).map_err(|error| error.to_string())?,
                false => decode(&value)?,
            };
            if object.str_at(&["metadata", "name"]).is_empty() {
                // the objects in which kube-apiserver stores allocated ranges have no name
                let name = place.key.path.rsplit('/').next().unwrap_or_default();
                object.set_at(&["metadata", "name"], Value::from(name));
            }
            let (want, found) = (group_version(built_in.group, built_in.version), object.str_at(&["apiVersion"]));
            // kube-apiserver stores some kinds in a different version
            let row = if found == want { Some(built_in) } else { built_in.sibling(found) };
            let Some(row) = row.filter(|row| object.str_at(&["kind"]) == row.kind) else {
                return Err(format!("it is a {found} {} and no {want} {}", object.str_at(&["kind"]), built_in.kind));
            };
            let stale = !enveloped || found != want;
            return Ok(Opened { value: row.to_stored(object).to_json().into(), stale });
        }
        if enveloped {
            return Err("it is protobuf, which this kind never is".to_owned());
        }
        let text = value.slice(..value.trim_ascii_end().len());
        if is_definition(place) {
            let object = decode(&text)?;
            let beta = CATALOGUE.beta_definition();
            if object.str_at(&["apiVersion"]) == group_version(beta.group, beta.version) {
                return Ok(Opened { value: beta.to_stored(object).to_json().into(), stale: false });
            }
        }
        Ok(Opened { value: text, stale: is_definition(place) })
    }
}

#[cfg(test)]
mod tests {
    use machinery::json;

    use super::*;
    use crate::apiregistration::apiservices::REGISTRATION_GROUP;

    #[test]
    fn keys_match_kube_apiserver() {
        let keys = UpstreamKeys { prefix: "/registry/".to_owned() };
        let cases = [
            ("/registry/namespaces/x", "", "namespaces", "x"),
            ("/registry/configmaps/ns/n", "", "configmaps", "ns/n"),
            ("/registry/services/specs/ns/n", "", "services", "ns/n"),
            ("/registry/events/ns/n", "", "events", "ns/n"),
            ("/registry/leases/ns/n", "coordination.k8s.io", "leases", "ns/n"),
            ("/registry/clusterroles/system:a", "rbac.authorization.k8s.io", "clusterroles", "system:a"),
            (
                "/registry/validatingwebhookconfigurations/n",
                "admissionregistration.k8s.io",
                "validatingwebhookconfigurations",
                "n",
            ),
            ("/registry/apiextensions.k8s.io/customresourcedefinitions/a.b.c", DEFINITION_GROUP, DEFINITIONS, "a.b.c"),
            ("/registry/apiregistration.k8s.io/apiservices/v1.", REGISTRATION_GROUP, "apiservices", "v1."),
            ("/registry/pods/ns/n", "", "pods", "ns/n"),
            ("/registry/services/endpoints/ns/n", "", "endpoints", "ns/n"),
            ("/registry/minions/n", "", "nodes", "n"),
            ("/registry/ingress/ns/n", "networking.k8s.io", "ingresses", "ns/n"),
            ("/registry/example.com/widgets/ns/n", "example.com", "widgets", "ns/n"),
            ("/registry/example.com/widgets/n", "example.com", "widgets", "n"),
        ];
        for (text, group, plural, path) in cases {
            let key = Key { group: group.into(), plural: plural.into(), path: path.into() };
            assert_eq!(keys.to_bytes(&key), text);
            assert_eq!(keys.parse(text.as_bytes()), Some(key), "{text}");
        }
        for foreign in [
            "/registry/nodes/n",
            "/registry/services/n",
            "/registry/masterleases/10.0.0.1",
            "/registry/health",
            "/registry/configmaps/n",
            "/registry/namespaces/a/b",
            "/registry/example.com/widgets/a/b/c",
            "/registry/example.com/widgets//b",
            "/registry/coordination.k8s.io/leases/ns/n",
            "/elsewhere/namespaces/x",
        ] {
            assert_eq!(keys.parse(foreign.as_bytes()), None, "{foreign}");
        }
    }

    #[test]
    fn reads_node_ports_of_kube_apiserver() {
        let place = place("/registry/ranges/servicenodeports");
        let message = b"k8s\0\n\x15\n\x02v1\x12\x0fRangeAllocation\x12\x14\n\x02\n\0\x12\x0b30000-32767\x1a\x01\x02";
        let opened = StorageForm(CustomForm::Json).open(&place, Bytes::from_static(message)).unwrap();
        let want = json!({"apiVersion": "v1", "data": "Ag==", "kind": "RangeAllocation",
            "metadata": {"name": "servicenodeports"}, "range": "30000-32767"});
        assert_eq!(decode(&opened.value).unwrap(), want);
    }

    fn place(key: &str) -> Place {
        upstream_layout("/registry", CustomForm::Json).find(&Bytes::copy_from_slice(key.as_bytes())).unwrap()
    }

    #[test]
    fn every_built_in_kind_is_a_protobuf_message() {
        for built_in in CATALOGUE.stored_kinds().filter(|built_in| !built_in.has_own_server) {
            let api_version = group_version(built_in.group, built_in.version);
            let object = json!({
                "apiVersion": (Value::String(api_version)), "kind": (built_in.kind), "metadata": {"name": "n", "uid": "u"}
            });
            let path = if built_in.namespaced { "ns/n" } else { "n" };
            let key = Key { group: built_in.group.into(), plural: built_in.plural.into(), path: path.into() };
            let place = upstream_layout("/registry", CustomForm::Json).place(&key);
            let stored = Bytes::from(built_in.to_stored(object).to_json());
            let sealed = StorageForm(CustomForm::Json).seal(&place, stored.clone()).unwrap();
            assert!(sealed.starts_with(&protobuf::MAGIC), "{}", built_in.kind);
            assert_eq!(
                StorageForm(CustomForm::Json).open(&place, sealed),
                Ok(Opened { value: stored, stale: false }),
                "{}",
                built_in.kind
            );
        }
    }

    #[test]
    fn keeps_fields_with_empty_values() {
        let place = place("/registry/leases/ns/n");
        let stored = r#"{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"n","namespace":"ns"},"spec":{"holderIdentity":"","leaseDurationSeconds":0}}"#;
        let built_in = typed(&place).unwrap();
        let stored = built_in.to_stored(decode(stored.as_bytes()).unwrap()).to_json();
        assert!(stored.contains(r#""holderIdentity":"""#));
        let sealed = StorageForm(CustomForm::Json).seal(&place, stored.clone().into()).unwrap();
        assert_eq!(StorageForm(CustomForm::Json).open(&place, sealed).unwrap().value, stored);
    }

    #[test]
    fn writes_custom_resources_as_lines_of_json() {
        let place = place("/registry/example.com/widgets/ns/n");
        let stored = Bytes::from(r#"{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"n"}}"#);
        let sealed = StorageForm(CustomForm::Json).seal(&place, stored.clone()).unwrap();
        assert_eq!(sealed, [&stored[..], b"\n"].concat());
        assert_eq!(StorageForm(CustomForm::Json).open(&place, sealed), Ok(Opened { value: stored, stale: false }));
    }

    #[test]
    fn reads_or_reports_foreign_values() {
        let map = place("/registry/configmaps/ns/n");
        let json =
            r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"n","namespace":"ns"},"data":{"a":"b"}}"#;
        let opened = StorageForm(CustomForm::Json).open(&map, Bytes::from(json)).unwrap();
        let found = machinery::value::decode(&opened.value).unwrap();
        assert_eq!((found.str_at(&["data", "a"]), opened.stale), ("b", true));
        let errors = [
            (&map, "hello", "it is neither JSON nor protobuf"),
            (&map, r#"{"kind":"Pod","apiVersion":"v1"}"#, "it is a v1 Pod and no v1 ConfigMap"),
        ];
        for (place, value, want) in errors {
            let error =
                StorageForm(CustomForm::Json).open(place, Bytes::copy_from_slice(value.as_bytes())).unwrap_err();
            assert!(error.starts_with(want), "{error}");
        }
        let bundles = place("/registry/clustertrustbundles/a");
        let bundle = json!({"apiVersion": "certificates.k8s.io/v1beta1", "kind": "ClusterTrustBundle",
            "metadata": {"name": "a"}, "spec": {"trustBundle": "x"}});
        let opened = StorageForm(CustomForm::Json).open(&bundles, bundle.to_json().into()).unwrap();
        let found = machinery::value::decode(&opened.value).unwrap();
        assert_eq!((found.str_at(&["apiVersion"]), opened.stale), ("certificates.k8s.io/v1", true));
        let definition = place("/registry/apiextensions.k8s.io/customresourcedefinitions/as.b.c");
        let beta = json!({
            "apiVersion": "apiextensions.k8s.io/v1beta1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "as.b.c"}, "spec": {
                "group": "b.c", "version": "v1", "scope": "Namespaced", "names": {"plural": "as", "kind": "A"},
                "versions": [{"name": "v1", "served": true, "storage": true}]
            }
        });
        let form = StorageForm(CustomForm::Json);
        let opened = form.open(&definition, beta.to_json().into()).unwrap();
        let found = machinery::value::decode(&opened.value).unwrap();
        assert_eq!(found.str_at(&["apiVersion"]), "apiextensions.k8s.io/v1");
        assert!(!opened.stale);
        let sealed = form.seal(&definition, opened.value.clone()).unwrap();
        let written = decode(&sealed).unwrap();
        assert_eq!(written.str_at(&["apiVersion"]), "apiextensions.k8s.io/v1beta1");
        assert_eq!(written.str_at(&["spec", "version"]), "v1");
        assert_eq!(form.open(&definition, sealed).unwrap(), opened);
        let as_v1 = form.open(&definition, opened.value.clone()).unwrap();
        assert_eq!(as_v1, Opened { stale: true, ..opened });
    }

    #[test]
    fn reads_custom_resources_in_both_encodings() {
        let place = place("/registry/example.com/widgets/ns/n");
        let object =
            json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "n"}, "spec": {"f": 1.5}});
        let text = Bytes::from(object.to_json());
        let long = json!({"apiVersion": "example.com/v1", "metadata": {"name": "n"},
            "spec": ((0..2000).map(Value::from).collect::<Value>())});
        let (json, cbor) = (StorageForm(CustomForm::Json), StorageForm(CustomForm::Cbor));
        let sealed = cbor.seal(&place, text.clone()).unwrap();
        assert!(sealed.starts_with(&cbor::SELF_DESCRIBED));
        assert_eq!(cbor.open(&place, sealed.clone()), Ok(Opened { value: text.clone(), stale: false }));
        assert_eq!(json.open(&place, sealed), Ok(Opened { value: text.clone(), stale: true }));
        let sealed = json.seal(&place, text.clone()).unwrap();
        assert!(sealed.ends_with(b"}\n"));
        assert_eq!(cbor.open(&place, sealed), Ok(Opened { value: text, stale: false }));
        let sealed = cbor.seal(&place, long.to_json().into()).unwrap();
        assert!(sealed.starts_with(b"{"), "kube-apiserver could not read it as CBOR");
        let whole = json.open(&place, cbor::encode(&long).into()).unwrap();
        assert_eq!(decode(&whole.value), Ok(long));
    }
}
