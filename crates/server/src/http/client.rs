//! The client of a connection.

use std::net::IpAddr;

use crate::authentication::ClientCertificate;

/// The other end of a connection.
pub struct Client {
    pub certificate: ClientCertificate,
    pub address: IpAddr,
}
