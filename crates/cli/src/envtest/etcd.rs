//! A stand-in for etcd: it responds to health checks and stores nothing, because Pintle keeps the objects itself.

use std::io::{Read, Write as _};
use std::net::{TcpListener, TcpStream, ToSocketAddrs as _};
use std::os::unix::process::parent_id;
use std::process::ExitCode;
use std::time::Duration;

use client::{Context as _, Result};

use crate::{ending, logs};

/// The version that the stand-in reports, by which Pintle recognizes it.
pub const VERSION: &str = "{\"etcdserver\":\"3.7.0+pintle\",\"etcdcluster\":\"3.7.0\"}";
const HEALTH: &str = "{\"health\":\"true\",\"reason\":\"\"}";
/// Maximum size of a request in bytes.
const REQUEST_BYTES_MAX: usize = 4096;
/// Time limit for a client to send its request.
const READ_TIMEOUT: Duration = Duration::from_secs(5);

const HELP: &str = "etcd of Pintle: responds to health checks for test environments; pintle keeps the objects itself

      --listen-client-urls URL,...   addresses to listen on (default http://127.0.0.1:2379)
      --exit-with-parent=BOOL        end when the process that has started it ends (default true)
      --advertise-client-urls, --listen-peer-urls, --data-dir, --unsafe-no-fsync: accepted, without effect
";

/// Serves until a signal ends the process, or until its parent process has ended.
pub fn run(arguments: &[String]) -> ExitCode {
    if arguments.iter().any(|argument| matches!(argument.as_str(), "--help" | "-h")) {
        return logs::printed(HELP);
    }
    let urls = value_of(arguments, "--listen-client-urls").unwrap_or("http://127.0.0.1:2379");
    let parent = parent_id();
    match listen(urls) {
        Ok(serving) if value_of(arguments, "--exit-with-parent") == Some("false") => {
            drop(serving.join());
            ExitCode::SUCCESS
        }
        Ok(_) => {
            ending::wait_for_end_of(parent);
            ExitCode::SUCCESS
        }
        Err(why) => {
            logs::print_error(&format!("etcd: {why}"));
            ExitCode::FAILURE
        }
    }
}

/// The value of a flag, given as `--name=value` or `--name value`.
fn value_of<'a>(arguments: &'a [String], name: &str) -> Option<&'a str> {
    let joined = |argument: &'a String| argument.strip_prefix(name)?.strip_prefix('=');
    let next = || Some(arguments.get(arguments.iter().position(|argument| argument == name)? + 1)?.as_str());
    arguments.iter().find_map(joined).or_else(next)
}

/// Serves in a thread.
fn listen(urls: &str) -> Result<std::thread::JoinHandle<()>> {
    let url = urls.split(',').next().unwrap_or_default();
    let address = url.strip_prefix("http://").ok_or_else(|| format!("{url}: only http:// is served"))?;
    let listener = TcpListener::bind(address.trim_end_matches('/')).context(url)?;
    Ok(std::thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            // a client that disconnects ends its own request only
            std::thread::spawn(move || drop(respond(connection)));
        }
    }))
}

fn respond(mut connection: TcpStream) -> std::io::Result<()> {
    connection.set_read_timeout(Some(READ_TIMEOUT))?;
    let is_version = read_head(&mut connection)?.starts_with(b"GET /version");
    let body = if is_version { VERSION } else { HEALTH };
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    connection.write_all(head.as_bytes())?;
    connection.write_all(body.as_bytes())
}

/// Reads the head of a request, which an empty line ends. It may arrive in several pieces. A longer one is cut off at
/// [`REQUEST_BYTES_MAX`].
fn read_head(connection: &mut impl Read) -> std::io::Result<Vec<u8>> {
    let (mut head, mut piece) = (vec![], [0; 512]);
    while head.len() < REQUEST_BYTES_MAX && !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let count = connection.read(&mut piece)?;
        if count == 0 {
            break;
        }
        head.extend_from_slice(&piece[..count]);
    }
    Ok(head)
}

/// Whether the stand-in, rather than etcd, listens on a URL.
pub fn is_stand_in(url: &str) -> bool {
    let reports_pintle = || -> std::io::Result<bool> {
        let address = url.trim_start_matches("http://").trim_end_matches('/');
        let address = address.to_socket_addrs()?.next().ok_or(std::io::ErrorKind::AddrNotAvailable)?;
        let mut connection = TcpStream::connect_timeout(&address, READ_TIMEOUT)?;
        connection.set_read_timeout(Some(READ_TIMEOUT))?;
        connection.write_all(b"GET /version HTTP/1.1\r\nHost: etcd\r\nConnection: close\r\n\r\n")?;
        let mut response = String::new();
        connection.take(REQUEST_BYTES_MAX as u64).read_to_string(&mut response)?;
        Ok(response.contains("+pintle"))
    };
    url.starts_with("http://") && reports_pintle().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_values_of_flags() {
        let arguments: Vec<String> =
            ["--data-dir", "/x", "--listen-client-urls=http://a:1"].map(str::to_owned).to_vec();
        assert_eq!(value_of(&arguments, "--data-dir"), Some("/x"));
        assert_eq!(value_of(&arguments, "--listen-client-urls"), Some("http://a:1"));
        assert_eq!(value_of(&arguments, "--nothing"), None);
    }

    #[test]
    fn request_may_arrive_in_pieces() {
        let mut connection = b"GET /ver".chain(&b"sion HTTP/1.1\r\n\r"[..]).chain(&b"\n"[..]);
        assert_eq!(read_head(&mut connection).unwrap(), b"GET /version HTTP/1.1\r\n\r\n");
        assert_eq!(read_head(&mut std::io::repeat(b'x')).unwrap().len(), REQUEST_BYTES_MAX);
    }

    #[test]
    fn stand_in_is_recognized_by_its_version() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || respond(listener.accept().unwrap().0));
        assert!(is_stand_in(&url));
        server.join().unwrap().unwrap();
        assert!(!is_stand_in("https://127.0.0.1:1"));
    }
}
