//! A watch over a WebSocket (RFC 6455, api-machinery 13): the pieces of its body, an event a message.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, Response, StatusCode, Uri};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use sha1::{Digest as _, Sha1};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadHalf};
use tokio::sync::mpsc;

use super::body::{Body, NextPiece};
use super::respond::{self, set};

type Answer = Response<Body>;

/// What every server appends to the client's key (RFC 6455, 1.3).
const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// What a sub-protocol that carries a bearer token begins with (api-machinery 13).
const TOKEN: &str = "base64url.bearer.authorization.k8s.io.";
const FINAL: u8 = 0x80;
const TEXT: u8 = 1;
const BINARY: u8 = 2;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;
/// The status of a close without any trouble, 1000.
const NORMAL: [u8; 2] = [0x03, 0xe8];
/// Octets that a control frame holds at most.
const CONTROL_BYTES_MAX: u64 = 125;
/// Pings of a client that wait for their pong.
const PINGS: usize = 4;

fn text<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// Whether a request asks for a WebSocket.
pub fn is_asked(headers: &HeaderMap) -> bool {
    text(headers, "connection").to_ascii_lowercase().contains("upgrade")
        && text(headers, "upgrade").eq_ignore_ascii_case("websocket")
}

/// The answer to a watch that asked for a WebSocket: 101 in place of its 200, or why there is none.
pub fn upgrade(watch: Answer, headers: &HeaderMap, connection: Option<OnUpgrade>) -> Answer {
    let (parts, body) = watch.into_parts();
    let (Body::Stream(next), Some(connection)) = (body, connection) else {
        return respond::text(400, "websocket protocol error");
    };
    let key = text(headers, "sec-websocket-key");
    if key.is_empty() {
        return respond::text(400, "mismatch challenge/response");
    }
    if text(headers, "sec-websocket-version") != "13" {
        let mut response = respond::text(400, "missing or bad WebSocket Version");
        set(response.headers_mut(), "sec-websocket-version", "13");
        return response;
    }
    if !has_origin(headers) {
        return respond::text(403, "");
    }
    let kind = parts.headers.get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
    let opcode = if kind.contains("protobuf") { BINARY } else { TEXT };
    crate::task::spawn("websocket", async move {
        if let Ok(connection) = connection.await {
            // the client may go at any time: there is nobody left to tell
            let _ = serve(TokioIo::new(connection), next, opcode).await;
        }
    });
    let mut response = Response::new(Body::Empty);
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    set(response.headers_mut(), "connection", "Upgrade");
    set(response.headers_mut(), "upgrade", "websocket");
    set(response.headers_mut(), "sec-websocket-accept", &accept(key));
    if let Some(protocol) = protocol(headers) {
        set(response.headers_mut(), "sec-websocket-protocol", protocol);
    }
    response
}

/// The first sub-protocol that is offered and is no token.
fn protocol(headers: &HeaderMap) -> Option<&str> {
    let mut offered = text(headers, "sec-websocket-protocol").split(',').map(str::trim);
    offered.find(|name| !name.is_empty() && !name.starts_with(TOKEN))
}

/// A browser says where its page is from, and so must everybody.
fn has_origin(headers: &HeaderMap) -> bool {
    let origin = text(headers, "origin");
    origin.parse::<Uri>().is_ok_and(|uri| uri.scheme().is_some() || origin.starts_with('/'))
}

fn accept(key: &str) -> String {
    STANDARD.encode(Sha1::new().chain_update(key).chain_update(GUID).finalize())
}

/// Sends until the watch ends, the client closes or the connection breaks.
async fn serve(connection: TokioIo<Upgraded>, mut next: NextPiece, opcode: u8) -> std::io::Result<()> {
    let (reader, mut writer) = tokio::io::split(connection);
    let (pings, mut asked) = mpsc::channel(PINGS);
    crate::task::spawn("websocket reader", read(reader, pings));
    loop {
        tokio::select! {
            ping = asked.recv() => match ping {
                Some(payload) => send(&mut writer, PONG, &payload).await?,
                None => break,
            },
            piece = &mut next => match piece {
                Some((bytes, pieces)) => {
                    for message in messages(&bytes, opcode) {
                        send(&mut writer, opcode, message).await?;
                    }
                    next = pieces.next();
                }
                None => break,
            },
        }
        writer.flush().await?;
    }
    send(&mut writer, CLOSE, &NORMAL).await?;
    writer.shutdown().await
}

/// The events of a piece: lines of JSON, or protobuf with its length in front.
fn messages(mut piece: &[u8], opcode: u8) -> Vec<&[u8]> {
    if opcode == TEXT {
        return piece.split_inclusive(|byte| *byte == b'\n').collect();
    }
    let mut found = vec![];
    while let Some((length, rest)) = piece.split_first_chunk() {
        let (message, rest) = rest.split_at(rest.len().min(u32::from_be_bytes(*length) as usize));
        found.push(message);
        piece = rest;
    }
    found
}

async fn send(writer: &mut (impl AsyncWrite + Unpin), opcode: u8, payload: &[u8]) -> std::io::Result<()> {
    let mut head = vec![FINAL | opcode];
    match payload.len() {
        length @ 0..=125 => head.push(length as u8),
        length @ 126..=0xffff => {
            head.push(126);
            head.extend_from_slice(&(length as u16).to_be_bytes());
        }
        length => {
            head.push(127);
            head.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    writer.write_all(&head).await?;
    writer.write_all(payload).await
}

/// Hands on pings and passes over what else a client says, until it closes or breaks a rule.
async fn read(mut reader: ReadHalf<TokioIo<Upgraded>>, pings: mpsc::Sender<Vec<u8>>) {
    while let Ok(Some(payload)) = ping(&mut reader).await {
        if pings.send(payload).await.is_err() {
            return;
        }
    }
}

/// The payload of the next ping; none when the client closes.
async fn ping(reader: &mut (impl AsyncRead + Unpin)) -> std::io::Result<Option<Vec<u8>>> {
    loop {
        let (first, second) = (reader.read_u8().await?, reader.read_u8().await?);
        let length = match second & 0x7f {
            126 => u64::from(reader.read_u16().await?),
            127 => reader.read_u64().await?,
            length => u64::from(length),
        };
        let masked = second & 0x80 != 0;
        let control = first & 0x08 != 0;
        if !masked || first & 0x0f == CLOSE || (control && length > CONTROL_BYTES_MAX) {
            return Ok(None);
        }
        let mask = reader.read_u32().await?.to_be_bytes();
        if first & 0x0f != PING {
            tokio::io::copy(&mut (&mut *reader).take(length), &mut tokio::io::sink()).await?;
            continue;
        }
        let mut payload = vec![0; length as usize];
        reader.read_exact(&mut payload).await?;
        payload.iter_mut().zip(mask.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
        return Ok(Some(payload));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_of_the_rfc_is_accepted_as_it_says() {
        assert_eq!(accept("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    /// What a handshake with these headers beside the usual ones is answered.
    fn answered(changed: &[(&'static str, &'static str)]) -> (u16, Option<http::HeaderValue>) {
        let key = [
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
            ("sec-websocket-version", "13"),
            ("origin", "https://a"),
        ];
        let mut headers = HeaderMap::new();
        for (name, value) in key.iter().chain(changed) {
            set(&mut headers, name, value);
        }
        let watch = Response::new(Body::Stream(Box::pin(async { None })));
        let response = upgrade(watch, &headers, Some(hyper::upgrade::on(http::Request::new(()))));
        (response.status().as_u16(), response.headers().get("sec-websocket-protocol").cloned())
    }

    #[tokio::test]
    async fn a_handshake_is_checked() {
        assert_eq!(answered(&[]), (101, None));
        let protocol = http::HeaderValue::from_static("one");
        for offered in ["one, two", "base64url.bearer.authorization.k8s.io.YQ, one"] {
            assert_eq!(answered(&[("sec-websocket-protocol", offered)]), (101, Some(protocol.clone())), "{offered}");
        }
        for (name, value, code) in [
            ("sec-websocket-key", "", 400),
            ("sec-websocket-version", "8", 400),
            ("origin", "", 403),
            ("origin", "null", 403),
        ] {
            assert_eq!(answered(&[(name, value)]), (code, None), "{name}: {value}");
        }
    }

    #[test]
    fn a_message_holds_one_event() {
        assert_eq!(messages(b"{1}\n{2}\n", TEXT), [b"{1}\n", b"{2}\n"]);
        assert_eq!(messages(b"\0\0\0\x02ab\0\0\0\x01c", BINARY), [b"ab".as_slice(), b"c"]);
    }

    #[tokio::test]
    async fn frames_have_the_shortest_head() {
        for (length, head) in [(125, 2), (126, 4), (0xffff, 4), (0x10000, 10)] {
            let mut out = vec![];
            send(&mut out, TEXT, &vec![b'x'; length]).await.unwrap();
            assert_eq!((out[0], out.len() - length), (0x81, head));
        }
    }

    #[tokio::test]
    async fn pings_come_through_and_the_rest_does_not() {
        // a text "hi", a ping "yo" behind its mask, a close; then one without a mask
        let said = b"\x81\x82\0\0\0\0hi\x89\x82\x01\x01\x01\x01xn\x88\x80\0\0\0\0\x89\x00";
        let mut reader = said.as_slice();
        assert_eq!(ping(&mut reader).await.unwrap().as_deref(), Some(b"yo".as_slice()));
        assert_eq!(ping(&mut reader).await.unwrap(), None);
        let mut unmasked = b"\x89\x00".as_slice();
        assert_eq!(ping(&mut unmasked).await.unwrap(), None);
        let mut broken = b"\x89".as_slice();
        assert!(ping(&mut broken).await.is_err());
    }
}
