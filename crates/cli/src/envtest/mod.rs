//! Pintle started as `kube-apiserver` or `etcd`, by test environments such as controller-runtime's envtest.

mod assets;
mod etcd;
mod kube_apiserver;

use std::path::Path;
use std::process::ExitCode;

pub use assets::{Assets, link_programs, run};

/// The arguments to continue with; ends the process if it served as `etcd`.
pub enum Start {
    Arguments(Vec<String>),
    End(ExitCode),
}

/// Translates the arguments according to the name under which the program was started.
pub fn start(arguments: Vec<String>) -> Start {
    let name = arguments.first().map(Path::new).and_then(Path::file_name).and_then(|name| name.to_str());
    match name {
        Some("etcd") => Start::End(etcd::run(&arguments[1..])),
        Some("kube-apiserver") => kube_apiserver::start(&arguments),
        _ => Start::Arguments(arguments),
    }
}
