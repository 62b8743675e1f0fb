//! The address of a server: the socket, and how clients reach it.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};

use client::Result;
use tokio::net::TcpListener;

/// Binds the socket, before anything is created, so that a start on a taken port leaves nothing behind.
pub async fn bind(address: SocketAddr) -> Result<TcpListener> {
    let failed = |error: std::io::Error| {
        let remedy = match error.kind() {
            ErrorKind::AddrInUse => "; choose another port, or --secure-port 0 for a free one",
            ErrorKind::PermissionDenied => "; ports below 1024 need the capability CAP_NET_BIND_SERVICE",
            _ => "",
        };
        format!("cannot listen on {address}: {error}{remedy}").into()
    };
    TcpListener::bind(address).await.map_err(failed)
}

/// The address under which clients reach the server. As in kube-apiserver, it is that of the default route if the server
/// listens on all addresses or on a loopback address. `None` if that is a loopback address too, which Endpoints may not
/// contain.
pub fn advertised(given: Option<IpAddr>, bound: IpAddr) -> Option<IpAddr> {
    let given = given.filter(|address| !address.is_unspecified());
    let bound = Some(bound).filter(|address| !address.is_unspecified() && !address.is_loopback());
    given.or(bound).or_else(routed_address).filter(|address| !address.is_loopback())
}

/// The local address of the route to a public address. No packet is sent.
fn routed_address() -> Option<IpAddr> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    Some(socket.local_addr().ok()?.ip()).filter(|address| !address.is_unspecified())
}

/// The URL of the server for clients.
pub fn url(address: SocketAddr) -> String {
    if address.ip().is_unspecified() {
        format!("https://127.0.0.1:{}", address.port())
    } else {
        format!("https://{address}")
    }
}
