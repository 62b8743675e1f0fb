//! Options of the client: addresses and credentials of etcd.

use std::path::PathBuf;

use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity, Uri};

use crate::error::OptionsError;
use crate::limits;

/// Addresses and credentials of etcd.
#[derive(Clone, Default)]
pub struct Options {
    /// `scheme://host:port` of each member.
    pub servers: Vec<String>,
    /// The prefix of all keys, without the slash at the end.
    pub prefix: String,
    /// CA bundle for the members' certificates, PEM; `None` for that of the system.
    pub authority: Option<Vec<u8>>,
    /// The client's certificate and its key, PEM.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
    pub credentials: Option<Credentials>,
    /// The first path segment of keys that expire, such as `events`, and their lifetime, in whole seconds.
    pub expiring: Option<(String, std::time::Duration)>,
    /// The expected id of the cluster.
    pub cluster: Option<u64>,
    /// The file that stores the id of the cluster for later starts, if `cluster` is `None`.
    pub cluster_file: Option<PathBuf>,
}

/// A user of etcd.
#[derive(Clone)]
pub struct Credentials {
    pub user: String,
    pub password: String,
}

/// A prefix as kube-apiserver joins it: it begins with one slash and ends with none.
pub fn normalise(prefix: &str) -> String {
    let parts: Vec<&str> = prefix.split('/').filter(|part| !part.is_empty()).collect();
    if parts.is_empty() { String::new() } else { format!("/{}", parts.join("/")) }
}

impl Options {
    /// The members' endpoints.
    pub fn endpoints(&self) -> Result<Vec<(String, Endpoint)>, OptionsError> {
        if self.servers.is_empty() {
            return Err(OptionsError::NoServer);
        }
        self.servers.iter().map(|url| Ok((url.clone(), self.endpoint(url)?))).collect()
    }

    fn endpoint(&self, url: &str) -> Result<Endpoint, OptionsError> {
        let wrong = |source| OptionsError::Server { url: url.to_owned(), source };
        let endpoint = Endpoint::from_shared(url.to_owned()).map_err(wrong)?;
        let encrypted = match url.parse::<Uri>().ok().as_ref().and_then(Uri::scheme_str) {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(OptionsError::Scheme { url: url.to_owned() }),
        };
        let endpoint = endpoint
            .connect_timeout(limits::CONNECT_TIMEOUT)
            .http2_keep_alive_interval(limits::KEEP_ALIVE)
            .keep_alive_timeout(limits::KEEP_ALIVE_TIMEOUT)
            .initial_stream_window_size(4 << 20)
            .initial_connection_window_size(16 << 20)
            .tcp_nodelay(true);
        if !encrypted {
            return Ok(endpoint);
        }
        let mut tls = match &self.authority {
            Some(pem) => ClientTlsConfig::new().ca_certificate(Certificate::from_pem(pem)),
            None => ClientTlsConfig::new().with_native_roots(),
        };
        if let Some((certificate, key)) = &self.identity {
            tls = tls.identity(Identity::from_pem(certificate, key));
        }
        endpoint.tls_config(tls).map_err(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_paths() {
        for (given, want) in [("/registry", "/registry"), ("registry/", "/registry"), ("a//b", "/a/b"), ("/", "")] {
            assert_eq!(normalise(given), want, "{given}");
        }
    }

    #[test]
    fn servers_are_urls() {
        let of = |url: &str| Options { servers: vec![url.to_owned()], ..Options::default() }.endpoints().map(drop);
        assert!(of("http://127.0.0.1:2379").is_ok());
        assert!(of("https://etcd.example.com:2379").is_ok());
        for wrong in ["127.0.0.1:2379", "unix:///tmp/x", "", "ftp://a:1"] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
        assert!(matches!(Options::default().endpoints(), Err(OptionsError::NoServer)));
    }
}
