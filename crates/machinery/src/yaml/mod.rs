//! Decoding and encoding of YAML with the behaviour of kube-apiserver's library (`sigs.k8s.io/yaml` over go-yaml v2).

mod buffers;
mod compose;
mod decode;
mod documents;
mod encode;
mod error;
mod expand;
mod key_order;
mod positions;
mod properties;
mod reader;
mod resolve;
mod scalars;
mod scanner;
mod style;
mod token;

pub use decode::{decode, is_plain_json};
pub use documents::{begins_document, documents};
pub use encode::encode;
pub use error::{YamlError, YamlProblem};
pub use expand::ALIASED_BYTES_MAX;
pub use positions::{FieldStep, Located, Position, Positions};
pub use resolve::reread;
pub use scanner::DEPTH_MAX;
