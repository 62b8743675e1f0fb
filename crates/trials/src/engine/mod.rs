//! Forks of one state, in which commands run: what plans and trials have in common.
//!
//! An [`Engine`] loads sources once, into a server in this process. Each [`Fork`] is an API of its own with these objects; it costs
//! about a millisecond, and nothing is copied. A [`Command`] that is started in a fork has its kubeconfig.

mod command;
mod error;
mod files;
mod fork;
mod kinds;
mod network;
mod writes;

use std::path::Path;
use std::sync::Arc;

use embed::Server;

pub use command::{Command, Ending, RunningCommand};
pub use error::Error;
use files::Directory;
pub use fork::{Fork, Patience};
pub use kinds::{Kind, Kinds};
pub use network::{Network, Reach};
pub use writes::{OWN, Write};

/// The source of forks.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Sources of objects, as for `pintle serve --from`. Without one, forks are empty.
    pub sources: Vec<String>,
    /// The release of Kubernetes to emulate, such as `1.36`, if it is not the newest.
    pub kubernetes_version: Option<String>,
    /// Sets and files of Progress objects, which stand for kubelets and for the controllers of workloads.
    pub progress: Vec<String>,
}

/// A server with the objects of sources, of which forks are made. It ends when this is dropped, or with [`Engine::stop`].
pub struct Engine {
    server: Server,
    base: Fork,
    files: Arc<Directory>,
}

impl Engine {
    /// Loads the sources.
    ///
    /// # Errors
    ///
    /// A source has no objects, there is no such set of Progress objects, or the server cannot start.
    pub async fn start(settings: &Settings) -> Result<Engine, Error> {
        let progress = embed::sets::objects(&settings.progress).map_err(Error::Setup)?;
        let builder = Server::ephemeral().testing().port(0).controllers().progress(progress);
        let builder = settings.sources.iter().fold(builder, |builder, source| builder.source(source));
        let builder = match &settings.kubernetes_version {
            Some(version) => builder.kubernetes_version(version),
            None => builder,
        };
        let server = builder.start().await.map_err(|error| Error::Setup(error.to_string()))?;
        let files = Arc::new(Directory::create()?);
        // forks of `default` decode their objects anew, those of a workspace share them
        let base = Fork::begin(server.default_workspace().fork().await?, files.clone()).await?;
        Ok(Engine { server, base, files })
    }

    /// The objects of the sources, which nothing should change.
    pub fn base(&self) -> &Fork {
        &self.base
    }

    /// A directory for further files, which is removed at the end.
    pub fn directory(&self) -> &Path {
        self.files.path()
    }

    /// Stops the server. Commands in forks should have been stopped.
    pub async fn stop(self) {
        self.server.stop().await;
    }
}
