//! Clients that open connections and streams and leave them idle.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use client::{Access, Call, Client, Protocol};

use super::super::subject::options;

/// Streams of one connection, as many as kube-apiserver allows.
pub const STREAMS: usize = 100;

/// Opens connections with a hundred streams each, whose flow control windows are never exhausted, and reads nothing of the
/// responses. Sets `opened` once all of them are open; ends shortly before `time`.
pub async fn never_read(
    access: &Access,
    connections: usize,
    path: &str,
    time: Duration,
    opened: &AtomicBool,
) -> Result<String, String> {
    let began = Instant::now();
    let client = Client::new(access, options(Protocol::Http2))?;
    let mut held = vec![];
    for _ in 0..connections {
        let stream = TokioIo::new(client.stream().await?);
        let (mut sender, mut driver) = http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(1 << 24)
            .initial_connection_window_size(1 << 30)
            .handshake::<_, Full<Bytes>>(stream)
            .await
            .map_err(|error| error.to_string())?;
        let mut responses = vec![];
        for _ in 0..STREAMS {
            let request = client.request(Call::get(path))?;
            let sent = async {
                sender.ready().await.map_err(|error| error.to_string())?;
                Ok::<_, String>(sender.send_request(request))
            };
            let sent = tokio::select! {
                sent = sent => sent?,
                _ = &mut driver => return Err("the server closed a connection".to_owned()),
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
pub async fn silent(access: &Access, count: usize, time: Duration, opened: &AtomicBool) -> Result<String, String> {
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
pub async fn websockets(access: &Access, count: usize, time: Duration, opened: &AtomicBool) -> Result<String, String> {
    const FRAME: usize = 1 << 20;
    const FRAMES: usize = 60;
    let began = Instant::now();
    let client = Client::new(access, options(Protocol::Http1))?;
    let failed = |error: std::io::Error| error.to_string();
    let mut held = vec![];
    for _ in 0..count {
        let mut stream = client.stream().await?;
        stream.write_all(handshake(access).as_bytes()).await.map_err(failed)?;
        let mut head = [0; 1024];
        let read = stream.read(&mut head).await.map_err(failed)?;
        if !head[..read].starts_with(b"HTTP/1.1 101") {
            return Err(String::from_utf8_lossy(&head[..read]).lines().next().unwrap_or_default().to_owned());
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

fn handshake(access: &Access) -> String {
    let authority = access.server.trim_start_matches("https://");
    let token =
        if access.token.is_empty() { String::new() } else { format!("Authorization: Bearer {}\r\n", access.token) };
    format!(
        "GET /apis/hostile.example.com/v1/things?watch=1 HTTP/1.1\r\nHost: {authority}\r\nOrigin: https://{authority}\r\n{token}Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
}
