//! Programs compiled from the schemas of versions; equal schemas share one.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Weak};

use base::digest;
use machinery::Value;
use parking_lot::Mutex;
use schema::apply::TypeSchema;
use schema::shape::Struct;
use schema::{CompileOptions, Schema};

/// The compiled schema of a version.
pub struct Program {
    pub schema: Schema,
    pub types: TypeSchema,
}

impl Program {
    fn compile(openapi: &Value, options: &CompileOptions) -> Program {
        let schema = Schema::compile(openapi, options);
        let deduced = options.preserve_unknown_fields || !schema.is_structural() || openapi.is_null();
        let types = if deduced { TypeSchema::schemaless() } else { TypeSchema::compile(openapi) };
        Program { schema, types }
    }

    /// The program of a built-in kind, typed by `shape`. It has no schema: its strategy defaults and validates objects.
    pub fn built_in(shape: &'static Struct) -> Arc<Program> {
        let schema = Schema::compile(&Value::Null, &CompileOptions::default());
        Arc::new(Program { schema, types: TypeSchema::of_shape(shape) })
    }

    /// The program of a schema in JSON, or of null. A live program of an equal schema is reused.
    pub fn of(encoded: &[u8], options: &CompileOptions) -> Arc<Program> {
        static KNOWN: LazyLock<Mutex<Known>> = LazyLock::new(Mutex::default);
        let lock = || KNOWN.lock();
        let name = digest::short(&[encoded, format!("{options:?}").as_bytes()].concat());
        if let Some(known) = lock().get(&name) {
            return known;
        }
        let openapi = machinery::value::decode(encoded).unwrap_or_default();
        let program = Arc::new(Program::compile(&openapi, options));
        lock().put(name, &program);
        program
    }
}

/// The live programs, by the digest of their schema and options.
#[derive(Default)]
struct Known {
    programs: HashMap<String, Weak<Program>>,
    /// Number of entries at which those without a live program are removed.
    sweep_at: usize,
}

impl Known {
    fn get(&self, name: &str) -> Option<Arc<Program>> {
        self.programs.get(name)?.upgrade()
    }

    fn put(&mut self, name: String, program: &Arc<Program>) {
        if self.programs.len() >= self.sweep_at {
            self.programs.retain(|_, program| program.strong_count() > 0);
            self.sweep_at = (self.programs.len() * 2).max(64);
        }
        self.programs.insert(name, Arc::downgrade(program));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_schemas_share_one_program() {
        let pruned = CompileOptions::default();
        let preserved = CompileOptions { preserve_unknown_fields: true, ..CompileOptions::default() };
        let text = br#"{"type":"object","description":"equal schemas have one program"}"#;
        let first = Program::of(text, &pruned);
        assert!(Arc::ptr_eq(&first, &Program::of(text, &pruned)));
        assert!(!Arc::ptr_eq(&first, &Program::of(text, &preserved)));
        assert!(!Arc::ptr_eq(&first, &Program::of(br#"{"type":"object"}"#, &pruned)));
    }

    #[test]
    fn drops_unused_programs() {
        let mut known = Known::default();
        let held = Arc::new(Program::compile(&Value::Null, &CompileOptions::default()));
        known.put("held".into(), &held);
        for i in 0..1000 {
            known.put(i.to_string(), &Arc::new(Program::compile(&Value::Null, &CompileOptions::default())));
        }
        assert!(known.get("held").is_some() && known.get("999").is_none());
        assert!(known.programs.len() <= 64);
    }
}
