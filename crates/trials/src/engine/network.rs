//! The connections of a command to anything but its API: a proxy notes their hosts, and a network namespace prevents them.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener as Listener};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::net::{AddressFamily, SendFlags, SocketType, netlink};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::command::{Command, RunningCommand};
use super::error::Error;
use crate::limits;

/// What a command reaches besides its API.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    #[default]
    Everything,
    /// The command has a network of its own, with the API and a proxy that refuses everything. This needs Linux and
    /// the right to make network namespaces.
    ApiOnly,
}

/// The network in which a command runs, until this is dropped.
pub struct Network {
    proxy: SocketAddr,
    namespace: Option<File>,
    hosts: Arc<Mutex<BTreeSet<String>>>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

impl Drop for Network {
    fn drop(&mut self) {
        self.tasks.iter().for_each(tokio::task::JoinHandle::abort);
    }
}

impl Network {
    /// A network with the API at an address.
    pub fn new(reach: Reach, api: SocketAddr) -> Result<Network, Error> {
        let failed = |error: std::io::Error| match reach {
            Reach::Everything => Error::Setup(format!("cannot listen: {error}")),
            Reach::ApiOnly => Error::Setup(format!("no network without hosts can be made here: {error}")),
        };
        let (namespace, listener, gate) = match reach {
            Reach::Everything => (None, listen(0).map_err(failed)?, None),
            Reach::ApiOnly => {
                // a thread has the network in which it has made its sockets, and ends with it
                let entered = std::thread::spawn(move || enter(api.port())).join();
                let (namespace, listener, gate) =
                    entered.unwrap_or_else(|_| Err(std::io::Error::other("a thread has failed"))).map_err(failed)?;
                (Some(namespace), listener, Some(gate))
            }
        };
        let hosts = Arc::<Mutex<BTreeSet<String>>>::default();
        let proxy = listener.local_addr().map_err(failed)?;
        let noted = hosts.clone();
        let mut tasks =
            vec![accept("proxy of a command", listener, move |client| proxied(client, reach, noted.clone()))];
        if let Some(gate) = gate {
            tasks.push(accept("API of a command", gate, move |client| joined(client, api)));
        }
        Ok(Network { proxy, namespace, hosts, tasks })
    }

    pub fn start(&self, command: &Command, kubeconfig: &Path) -> Result<RunningCommand, Error> {
        let mut command = command.clone();
        let proxy = OsString::from(format!("http://{}", self.proxy));
        for name in ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"] {
            // a proxy that the user needs stays, unless nothing can be reached anyway
            if self.namespace.is_some() || std::env::var_os(name).is_none() {
                command.environment.push((name.into(), proxy.clone()));
            }
        }
        for name in ["NO_PROXY", "no_proxy"] {
            let given = std::env::var(name).map(|given| given + ",").unwrap_or_default();
            command.environment.push((name.into(), format!("{given}localhost,127.0.0.1,::1").into()));
        }
        let Some(namespace) = &self.namespace else { return RunningCommand::start(&command, kubeconfig) };
        let start = || {
            let moved = move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network));
            let why =
                |error: rustix::io::Errno| Error::NotStarted { command: command.to_string(), why: error.to_string() };
            moved.map_err(why).and_then(|()| RunningCommand::start(&command, kubeconfig))
        };
        std::thread::scope(|scope| scope.spawn(start).join())
            .unwrap_or_else(|_| Err(Error::Setup("a thread has failed".to_owned())))
    }

    /// The hosts that commands have asked the proxy for, each with its port.
    pub fn hosts(&self) -> Vec<String> {
        self.hosts.lock().iter().cloned().collect()
    }
}

fn listen(port: u16) -> std::io::Result<Listener> {
    Listener::bind((Ipv4Addr::LOCALHOST, port))
}

/// Gives this thread a network of its own. Returns it, and sockets in it for a proxy and for the API.
fn enter(port: u16) -> std::io::Result<(File, Listener, Listener)> {
    #[expect(deprecated, reason = "it is unsafe only for file descriptors, which stay shared here")]
    rustix::thread::unshare(UnshareFlags::NEWNET)?;
    // RTM_NEWLINK: the first interface, which is the loopback, goes up
    let socket = rustix::net::socket(AddressFamily::NETLINK, SocketType::RAW, None)?;
    let [length, up, link] = [32_u32, 1, 1].map(u32::to_ne_bytes);
    let [kind, flags] = [16_u16, 1].map(u16::to_ne_bytes);
    let message = [&length[..], &kind, &flags, &[0; 8], &[0; 4], &link, &up, &up].concat();
    rustix::net::sendto(&socket, &message, SendFlags::empty(), &netlink::SocketAddrNetlink::new(0, 0))?;
    Ok((File::open("/proc/thread-self/ns/net")?, listen(0)?, listen(port)?))
}

/// Serves each connection in a task of its own.
fn accept<F>(
    name: &'static str,
    listener: Listener,
    serve: impl Fn(TcpStream) -> F + Send + 'static,
) -> tokio::task::JoinHandle<()>
where
    F: Future<Output = std::io::Result<()>> + Send + 'static,
{
    base::task::spawn(name, async move {
        let Ok(listener) = listener.set_nonblocking(true).and_then(|()| TcpListener::from_std(listener)) else {
            return;
        };
        while let Ok((client, _)) = listener.accept().await {
            let serving = serve(client);
            base::task::spawn(name, async move { drop(serving.await) });
        }
    })
}

async fn joined(mut client: TcpStream, to: SocketAddr) -> std::io::Result<()> {
    let mut server = TcpStream::connect(to).await?;
    tokio::io::copy_bidirectional(&mut client, &mut server).await.map(drop)
}

/// Serves one connection of a proxy: notes the host, and refuses or forwards.
async fn proxied(mut client: TcpStream, reach: Reach, hosts: Arc<Mutex<BTreeSet<String>>>) -> std::io::Result<()> {
    let mut head = vec![];
    while !head.ends_with(b"\r\n\r\n") && head.len() < limits::PROXY_HEAD_BYTES {
        head.push(client.read_u8().await?);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let (line, fields) = head.split_once("\r\n").unwrap_or_default();
    let [method, target, version] = line.split(' ').collect::<Vec<_>>().try_into().unwrap_or_default();
    let (host, path) = match target.strip_prefix("http://").map(|rest| rest.split_once('/').unwrap_or((rest, ""))) {
        Some((host, path)) if host.contains(':') => (host.to_owned(), path),
        Some((host, path)) => (format!("{host}:80"), path),
        None => (target.to_owned(), ""),
    };
    {
        let mut hosts = hosts.lock();
        if hosts.len() < limits::HOSTS_MAX {
            hosts.insert(host.clone());
        }
    }
    if reach == Reach::ApiOnly {
        let refusal = "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        return client.write_all(refusal.as_bytes()).await;
    }
    let mut server = TcpStream::connect(&host).await?;
    if method == "CONNECT" {
        client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
    } else {
        // one request a connection, since the next one may be for another host
        let is_kept = |field: &&str| !field.to_ascii_lowercase().contains("connection:");
        let fields: String = fields.split_inclusive("\r\n").filter(is_kept).collect();
        server.write_all(format!("{method} /{path} {version}\r\nConnection: close\r\n{fields}").as_bytes()).await?;
    }
    tokio::io::copy_bidirectional(&mut client, &mut server).await.map(drop)
}
