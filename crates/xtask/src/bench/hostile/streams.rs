//! Clients that open connections and streams and leave them idle.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use client::{Access, Call, Client, Protocol, Result, fail};

use super::super::subject::options;

/// Streams of one connection, as many as kube-apiserver allows.
pub const STREAMS: usize = 100;

type Stream = TlsStream<TcpStream>;

/// Pause between two bytes of a slow body.
const SLOW_PAUSE: Duration = Duration::from_millis(100);
/// Time limits of a write to a slow connection, and of a read of the administrator beside them.
const WRITE: Duration = Duration::from_secs(2);
const READ: Duration = Duration::from_secs(10);

/// Opens connections with a hundred streams each, whose flow control windows are never exhausted, and reads nothing of the
/// responses. Sets `opened` once all of them are open; ends shortly before `time`.
pub async fn never_read(
    access: &Access,
    connections: usize,
    path: &str,
    time: Duration,
    opened: &AtomicBool,
) -> Result<String> {
    let began = Instant::now();
    let client = Client::new(access, options(Protocol::Http2))?;
    let mut held = vec![];
    for _ in 0..connections {
        let stream = TokioIo::new(client.stream().await?);
        let (mut sender, mut driver) = http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(1 << 24)
            .initial_connection_window_size(1 << 30)
            .handshake::<_, Full<Bytes>>(stream)
            .await?;
        let mut responses = vec![];
        for _ in 0..STREAMS {
            let request = client.request(Call::get(path))?;
            let sent = async {
                sender.ready().await?;
                Ok::<_, hyper::Error>(sender.send_request(request))
            };
            let sent = tokio::select! {
                sent = sent => sent?,
                _ = &mut driver => return fail("the server closed a connection"),
            };
            responses.push(Box::pin(sent));
        }
        // after the requests have been sent, the connection is no longer polled, so nothing is read
        let _ = tokio::time::timeout(Duration::from_millis(50), &mut driver).await;
        held.push((sender, driver, responses));
    }
    opened.store(true, Ordering::Relaxed);
    tokio::time::sleep(time.saturating_sub(began.elapsed() + Duration::from_secs(1))).await;
    Ok(format!("{} streams were open", held.len() * STREAMS))
}

/// Opens TLS connections and sends nothing. Sets `opened` once all of them are open.
pub async fn silent(access: &Access, count: usize, time: Duration, opened: &AtomicBool) -> Result<String> {
    let client = Client::new(access, options(Protocol::Http1))?;
    let mut held = vec![];
    for _ in 0..count {
        match tokio::time::timeout(Duration::from_secs(2), client.stream()).await {
            Ok(Ok(stream)) => held.push(stream),
            _ => break,
        }
    }
    opened.store(true, Ordering::Relaxed);
    tokio::time::sleep(time / 2).await;
    Ok(format!("{} of {count} connections were accepted", held.len()))
}

/// Opens watches over WebSockets and sends 60 MiB of one message on each, which does not end. Sets `opened` once all of them
/// are open.
pub async fn websockets(access: &Access, count: usize, time: Duration, opened: &AtomicBool) -> Result<String> {
    const FRAME: usize = 1 << 20;
    const FRAMES: usize = 60;
    let began = Instant::now();
    let client = Client::new(access, options(Protocol::Http1))?;
    let mut held = vec![];
    for _ in 0..count {
        let mut stream = client.stream().await?;
        stream.write_all(handshake(access).as_bytes()).await?;
        let mut head = [0; 1024];
        let read = stream.read(&mut head).await?;
        if !head[..read].starts_with(b"HTTP/1.1 101") {
            return fail(String::from_utf8_lossy(&head[..read]).lines().next().unwrap_or_default());
        }
        held.push(stream);
    }
    opened.store(true, Ordering::Relaxed);
    let mut sent = 0;
    for number in 0..FRAMES {
        let opcode = if number == 0 { 2 } else { 0 };
        // the mask of zeros leaves the data as it is
        let mut frame = [&[opcode, 0x80 | 127], &(FRAME as u64).to_be_bytes()[..], &[0; 4]].concat();
        frame.resize(frame.len() + FRAME, 0);
        for stream in &mut held {
            let write = tokio::time::timeout(Duration::from_secs(1), stream.write_all(&frame));
            sent += usize::from(matches!(write.await, Ok(Ok(()))));
        }
        if began.elapsed() > time / 2 {
            break;
        }
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    Ok(format!("{sent} MiB were sent on {count} connections"))
}

/// Begins requests without credentials, whose bodies arrive byte by byte; a connection that the server closes is opened again. Sets
/// `opened` once all of them are open. Returns the longest time that a read of the administrator on a new connection took.
pub async fn slow(access: &Access, count: usize, time: Duration, opened: &AtomicBool) -> Result<String> {
    let began = Instant::now();
    let anonymous = Access { certificate: vec![], key: vec![], token: String::new(), ..access.clone() };
    let (clients, admin) =
        (Client::new(&anonymous, options(Protocol::Http1))?, Client::new(access, options(Protocol::Http1))?);
    let head = format!(
        "POST /clusters/x HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n{{",
        access.server.trim_start_matches("https://")
    );
    let mut held = vec![];
    let mut slowest = Some(Duration::ZERO);
    while began.elapsed() < time / 2 {
        tokio::time::sleep(SLOW_PAUSE).await;
        held = refill(held, &clients, count, &head).await;
        opened.store(true, Ordering::Relaxed);
        let started = Instant::now();
        let read = async { admin.connect().await?.send(Call::get("/api/v1/namespaces/default")).await?.ok("a read") };
        let is_read = matches!(tokio::time::timeout(READ, read).await, Ok(Ok(_)));
        slowest = slowest.filter(|_| is_read).map(|slowest| slowest.max(started.elapsed()));
    }
    let held = held.len();
    Ok(match slowest {
        Some(slowest) => {
            format!("{held} of {count} held; the administrator reads within {:.1} s", slowest.as_secs_f64())
        }
        None => format!("{held} of {count} held; the administrator cannot always read"),
    })
}

/// Sends a byte on each connection, and opens connections in place of those that the server has closed.
async fn refill(held: Vec<Stream>, clients: &Client, count: usize, head: &str) -> Vec<Stream> {
    let mut alive = vec![];
    for mut stream in held {
        if matches!(tokio::time::timeout(WRITE, stream.write_all(b" ")).await, Ok(Ok(()))) {
            alive.push(stream);
        }
    }
    while alive.len() < count {
        let Ok(Ok(mut stream)) = tokio::time::timeout(WRITE, clients.stream()).await else { break };
        let _ = tokio::time::timeout(WRITE, stream.write_all(head.as_bytes())).await;
        alive.push(stream);
    }
    alive
}

fn handshake(access: &Access) -> String {
    let authority = access.server.trim_start_matches("https://");
    let token =
        if access.token.is_empty() { String::new() } else { format!("Authorization: Bearer {}\r\n", access.token) };
    format!(
        "GET /apis/hostile.example.com/v1/things?watch=1 HTTP/1.1\r\nHost: {authority}\r\nOrigin: https://{authority}\r\n{token}Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
}
