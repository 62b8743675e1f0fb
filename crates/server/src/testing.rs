//! The server of unit tests.

use std::sync::Arc;

use crate::Storage;
use crate::controllers::{Controllers, Derived};
use crate::verbs::Context;

/// A server with the default configuration on a store, and the state of its controllers, which are not running.
pub async fn server(store: Arc<dyn store::Store>) -> (Arc<Context>, Arc<Derived>) {
    let derived = Arc::new(Derived::new(&Controllers::default(), false));
    let (admission, components) = Default::default();
    let prepared = crate::prepare(
        Storage::own(store),
        admission,
        components,
        derived.clone(),
        Default::default(),
        Default::default(),
    );
    (prepared.await.unwrap(), derived)
}

/// [`server`] on an empty store in memory.
pub async fn empty_server() -> (Arc<Context>, Arc<Derived>) {
    server(Arc::new(store::Embedded::in_memory())).await
}
