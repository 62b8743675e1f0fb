//! Writes the IPAddress objects that record which cluster IPs are allocated, as the server itself.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use kinds::CATALOGUE;
use machinery::{Result, Status, Value};
use objects::{Objects, Stored};
use resource::Resource;

use super::context::Context;
use super::delete::delete_as_server;
use crate::allocation::{ADDRESSES, AddressObjects};

impl Context {
    /// The resource of IPAddresses. They are written even if `--runtime-config` turns them off for clients.
    fn addresses(&self) -> Result<Arc<Resource>> {
        let (group, plural) = ADDRESSES;
        let unregistered = || Some(self.unregistered(CATALOGUE.row_of("networking.k8s.io/v1", "IPAddress")?));
        self.registry.get(group, plural).or_else(unregistered).ok_or_else(Status::no_such_resource)
    }
}

impl AddressObjects for Context {
    fn objects(&self) -> &Arc<Objects> {
        &self.objects
    }

    fn create(&self, address: Value) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let resource = self.addresses()?;
            self.as_server(&resource, "", "").create(&address).await
        })
    }

    fn delete(&self, address: Arc<Stored>) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move { delete_as_server(self, &self.addresses()?, vec![address]).await })
    }
}
