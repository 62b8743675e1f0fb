//! Watches over WebSockets (RFC 6455): each message is one event.

use std::time::Duration;

use access::authentication::websocket::TOKEN_PROTOCOL;
use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::BytesMut;
use futures_util::{SinkExt as _, StreamExt as _};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Response, StatusCode};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use machinery::url::Url;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};

use super::body::{Body, NextPiece};
use super::open::OpenGuard;
use super::respond::{self, header, set};
use crate::limits;

type HttpResponse = Response<Body>;

/// Whether a request asks for an upgrade to a WebSocket.
pub fn is_upgrade_request(headers: &HeaderMap) -> bool {
    header(headers, "connection").to_ascii_lowercase().contains("upgrade")
        && header(headers, "upgrade").eq_ignore_ascii_case("websocket")
}

/// Upgrades the connection of a watch and sends its events there. Returns 101 instead of the watch's 200, or an error
/// if the handshake is invalid.
pub fn upgrade(
    watch: HttpResponse,
    headers: &HeaderMap,
    connection: Option<OnUpgrade>,
    guard: OpenGuard,
) -> HttpResponse {
    let (parts, body) = watch.into_parts();
    let (Body::Stream(next), Some(connection)) = (body, connection) else {
        return respond::text(400, "websocket protocol error");
    };
    let key = header(headers, "sec-websocket-key");
    if key.is_empty() {
        return respond::text(400, "mismatch challenge/response");
    }
    if header(headers, "sec-websocket-version") != "13" {
        let mut response = respond::text(400, "missing or bad WebSocket Version");
        set(response.headers_mut(), "sec-websocket-version", "13");
        return response;
    }
    if !has_origin(headers) {
        return respond::text(403, "");
    }
    let kind = header(&parts.headers, CONTENT_TYPE);
    let form = if kind.contains("protobuf") { Form::Binary } else { Form::Text };
    base::task::spawn("websocket", async move {
        if let Ok(connection) = connection.await {
            let stream =
                WebSocketStream::from_raw_socket(TokioIo::new(connection), Role::Server, Some(configuration())).await;
            // an error means that the client is gone, so it cannot be reported
            let _ = serve(stream, next, form).await;
        }
        drop(guard);
    });
    let mut response = respond::response(StatusCode::SWITCHING_PROTOCOLS, Body::Empty);
    set(response.headers_mut(), "connection", "Upgrade");
    set(response.headers_mut(), "upgrade", "websocket");
    set(response.headers_mut(), "sec-websocket-accept", &accept_key(key));
    if let Some(protocol) = protocol(&protocols(headers)) {
        set(response.headers_mut(), "sec-websocket-protocol", protocol);
    }
    response
}

/// `Sec-WebSocket-Accept`: proves that the server has read the client's `Sec-WebSocket-Key` (RFC 6455, section 4.2.2).
fn accept_key(key: &str) -> String {
    const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    let hash = digest(&SHA1_FOR_LEGACY_USE_ONLY, format!("{key}{GUID}").as_bytes());
    STANDARD.encode(hash.as_ref())
}

/// The subprotocols that the client offers, joined by commas.
pub fn protocols(headers: &HeaderMap) -> String {
    let lines = headers.get_all("sec-websocket-protocol").iter().filter_map(|line| line.to_str().ok());
    lines.collect::<Vec<_>>().join(",")
}

/// The first offered subprotocol that does not carry a bearer token.
fn protocol(offered: &str) -> Option<&str> {
    offered.split(',').map(str::trim).find(|name| !name.is_empty() && !name.starts_with(TOKEN_PROTOCOL))
}

/// Whether there is a valid `Origin` header. Go's WebSocket server requires one of all clients, not only of browsers.
fn has_origin(headers: &HeaderMap) -> bool {
    Url::parse_request(header(headers, "origin")).is_ok()
}

/// The type of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// A line of JSON per message.
    Text,
    /// A protobuf message without its length prefix.
    Binary,
}

/// Limits of what clients send. It is ignored, but a message is kept in memory until it is complete.
fn configuration() -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(limits::WEBSOCKET_READ_BYTES)
        .max_frame_size(Some(limits::WEBSOCKET_MESSAGE_BYTES_MAX))
        .max_message_size(Some(limits::WEBSOCKET_MESSAGE_BYTES_MAX))
}

/// Sends events until the watch ends, the client closes the WebSocket or the connection fails. Reading from the stream
/// also responds to pings.
async fn serve<S>(mut stream: WebSocketStream<S>, mut next: NextPiece, form: Form) -> Result<(), Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let close = |code| CloseFrame { code, reason: Utf8Bytes::default() };
    // a piece of the body may end within an event
    let mut unsent = BytesMut::new();
    loop {
        tokio::select! {
            received = stream.next() => match received {
                Some(Ok(message)) if !message.is_close() => {}
                Some(Err(Error::Capacity(_))) => return stream.close(Some(close(CloseCode::Size))).await,
                _ => return stream.close(None).await,
            },
            piece = &mut next => match piece {
                Ok(Some((bytes, pieces))) => {
                    unsent.extend_from_slice(&bytes);
                    while let Some(message) = next_message(&mut unsent, form) {
                        stream.feed(message).await?;
                    }
                    stream.flush().await?;
                    next = pieces.next();
                }
                Ok(None) | Err(_) => break,
            },
        }
    }
    stream.close(Some(close(CloseCode::Normal))).await?;
    // wait for the client's close frame; otherwise the client would see a connection reset
    let closed = async { while let Some(Ok(_)) = stream.next().await {} };
    let _ = tokio::time::timeout(Duration::from_secs(limits::WEBSOCKET_CLOSE_SECONDS), closed).await;
    Ok(())
}

/// Removes the first event of `unsent`; `None` if it is incomplete.
fn next_message(unsent: &mut BytesMut, form: Form) -> Option<Message> {
    if form == Form::Text {
        let end = unsent.iter().position(|byte| *byte == b'\n')?;
        let line = Utf8Bytes::try_from(unsent.split_to(end + 1).freeze()).ok()?;
        return Some(Message::Text(line));
    }
    const LENGTH: usize = 4;
    let length = u32::from_be_bytes(*unsent.first_chunk::<LENGTH>()?) as usize;
    if unsent.len() < LENGTH + length {
        return None;
    }
    let message = unsent.split_to(LENGTH + length).split_off(LENGTH);
    Some(Message::binary(message.freeze()))
}

#[cfg(test)]
mod tests {
    use super::super::open::OpenCount;
    use super::*;

    /// The status code and the subprotocol of the response to a handshake with these headers in addition to the usual
    /// ones.
    fn handshake(changed: &[(&'static str, &'static str)]) -> (u16, Option<http::HeaderValue>) {
        let key = [
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
            ("sec-websocket-version", "13"),
            ("origin", "https://a"),
        ];
        let mut headers = HeaderMap::new();
        for (name, value) in key.iter().chain(changed) {
            set(&mut headers, name, value);
        }
        let watch = Response::new(Body::Stream(Box::pin(async { Ok(None) })));
        let response =
            upgrade(watch, &headers, Some(hyper::upgrade::on(http::Request::new(()))), OpenCount::new().enter());
        (response.status().as_u16(), response.headers().get("sec-websocket-protocol").cloned())
    }

    #[tokio::test]
    async fn websocket_handshake_is_validated() {
        assert_eq!(handshake(&[]), (101, None));
        let protocol = http::HeaderValue::from_static("one");
        for offered in ["one, two", "base64url.bearer.authorization.k8s.io.YQ, one"] {
            assert_eq!(handshake(&[("sec-websocket-protocol", offered)]), (101, Some(protocol.clone())), "{offered}");
        }
        // the example of RFC 6455, section 1.3
        assert_eq!(accept_key("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        for (name, value, code) in [
            ("sec-websocket-key", "", 400),
            ("sec-websocket-version", "8", 400),
            ("origin", "", 403),
            ("origin", "null", 403),
        ] {
            assert_eq!(handshake(&[(name, value)]), (code, None), "{name}: {value}");
        }
    }

    #[tokio::test]
    async fn messages_of_clients_are_bounded() {
        let (client, server) = tokio::io::duplex(4 * limits::WEBSOCKET_MESSAGE_BYTES_MAX);
        let stream = WebSocketStream::from_raw_socket(server, Role::Server, Some(configuration())).await;
        let served = base::task::spawn("websocket", serve(stream, Box::pin(std::future::pending()), Form::Text));
        let mut client = WebSocketStream::from_raw_socket(client, Role::Client, None).await;
        let message = |bytes: usize| Message::binary(vec![0; bytes]);
        client.send(message(limits::WEBSOCKET_MESSAGE_BYTES_MAX)).await.unwrap();
        client.send(Message::Ping(Default::default())).await.unwrap();
        assert!(client.next().await.unwrap().unwrap().is_pong());
        client.send(message(limits::WEBSOCKET_MESSAGE_BYTES_MAX + 1)).await.unwrap();
        let Some(Ok(Message::Close(Some(frame)))) = client.next().await else { panic!("the watch goes on") };
        assert_eq!(frame.code, CloseCode::Size);
        served.await.unwrap().unwrap();
    }

    #[test]
    fn each_websocket_message_is_one_event() {
        let all = |form, pieces: &[&[u8]]| {
            let (mut unsent, mut found) = (BytesMut::new(), vec![]);
            for piece in pieces {
                unsent.extend_from_slice(piece);
                found.extend(std::iter::from_fn(|| next_message(&mut unsent, form)));
            }
            assert!(unsent.is_empty());
            found
        };
        let text = [Message::text("{1}\n"), Message::text("{2}\n")];
        assert_eq!(all(Form::Text, &[b"{1}\n{2}\n"]), text);
        assert_eq!(all(Form::Text, &[b"{1", b"}\n{", b"2}\n"]), text);
        let binary = [Message::binary(&b"ab"[..]), Message::binary(&b"c"[..])];
        assert_eq!(all(Form::Binary, &[b"\0\0\0\x02ab\0\0\0\x01c"]), binary);
        assert_eq!(all(Form::Binary, &[b"\0\0", b"\0\x02a", b"b\0\0\0\x01", b"c"]), binary);
    }
}
