//! The peer of a connection.

use std::net::IpAddr;

use access::authentication::ClientCertificate;

/// The client at the other end of a connection: its TLS certificate and its IP address.
pub struct Client {
    pub certificate: ClientCertificate,
    pub address: IpAddr,
}
