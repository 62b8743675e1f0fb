//! A watch over a WebSocket (RFC 6455): the pieces of its body, an event a message.

use std::time::Duration;

use bytes::BytesMut;
use futures_util::{SinkExt as _, StreamExt as _};
use http::{HeaderMap, Response, StatusCode, Uri};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role};
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};

use super::body::{Body, NextPiece};
use super::open::OpenGuard;
use super::respond::{self, set};
use crate::authentication::websocket::TOKEN_PROTOCOL;
use crate::limits;

type HttpResponse = Response<Body>;

fn text<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// Whether a request asks for a WebSocket.
pub fn is_upgrade_request(headers: &HeaderMap) -> bool {
    text(headers, "connection").to_ascii_lowercase().contains("upgrade")
        && text(headers, "upgrade").eq_ignore_ascii_case("websocket")
}

/// The answer to a watch that asked for a WebSocket: 101 in place of its 200, or why there is none.
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
    let form = if kind.contains("protobuf") { Form::Binary } else { Form::Text };
    crate::task::spawn("websocket", async move {
        if let Ok(connection) = connection.await {
            let stream = WebSocketStream::from_raw_socket(TokioIo::new(connection), Role::Server, None).await;
            // the client may go at any time: there is nobody left to tell
            let _ = serve(stream, next, form).await;
        }
        drop(guard);
    });
    let mut response = Response::new(Body::Empty);
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    set(response.headers_mut(), "connection", "Upgrade");
    set(response.headers_mut(), "upgrade", "websocket");
    set(response.headers_mut(), "sec-websocket-accept", &derive_accept_key(key.as_bytes()));
    if let Some(protocol) = protocol(&protocols(headers)) {
        set(response.headers_mut(), "sec-websocket-protocol", protocol);
    }
    response
}

/// The sub-protocols that are offered, joined by commas.
pub fn protocols(headers: &HeaderMap) -> String {
    let lines = headers.get_all("sec-websocket-protocol").iter().filter_map(|line| line.to_str().ok());
    lines.collect::<Vec<_>>().join(",")
}

/// The first of them that is no token.
fn protocol(offered: &str) -> Option<&str> {
    offered.split(',').map(str::trim).find(|name| !name.is_empty() && !name.starts_with(TOKEN_PROTOCOL))
}

/// A browser says where its page is from, and so must everybody.
fn has_origin(headers: &HeaderMap) -> bool {
    let origin = text(headers, "origin");
    origin.parse::<Uri>().is_ok_and(|uri| uri.scheme().is_some() || origin.starts_with('/'))
}

/// How events are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Lines of JSON.
    Text,
    /// Protobuf with its length in front.
    Binary,
}

/// Sends until the watch ends, the client closes or the connection breaks; pings are answered on the way.
async fn serve(mut stream: WebSocketStream<TokioIo<Upgraded>>, mut next: NextPiece, form: Form) -> Result<(), Error> {
    // pieces end anywhere in an event
    let mut unsent = BytesMut::new();
    loop {
        tokio::select! {
            received = stream.next() => match received {
                Some(Ok(message)) if !message.is_close() => {}
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
    stream.close(Some(CloseFrame { code: CloseCode::Normal, reason: Utf8Bytes::default() })).await?;
    // the client says goodbye as well; without that its end of the connection would break
    let goodbye = async { while let Some(Ok(_)) = stream.next().await {} };
    let _ = tokio::time::timeout(Duration::from_secs(limits::WEBSOCKET_CLOSE_SECONDS), goodbye).await;
    Ok(())
}

/// Takes the first event off what has come, if all of it has.
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
    use super::super::open::Open;
    use super::*;

    /// What a handshake with these headers beside the usual ones is answered.
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
        let response = upgrade(watch, &headers, Some(hyper::upgrade::on(http::Request::new(()))), Open::new().enter());
        (response.status().as_u16(), response.headers().get("sec-websocket-protocol").cloned())
    }

    #[tokio::test]
    async fn a_handshake_is_checked() {
        assert_eq!(handshake(&[]), (101, None));
        let protocol = http::HeaderValue::from_static("one");
        for offered in ["one, two", "base64url.bearer.authorization.k8s.io.YQ, one"] {
            assert_eq!(handshake(&[("sec-websocket-protocol", offered)]), (101, Some(protocol.clone())), "{offered}");
        }
        for (name, value, code) in [
            ("sec-websocket-key", "", 400),
            ("sec-websocket-version", "8", 400),
            ("origin", "", 403),
            ("origin", "null", 403),
        ] {
            assert_eq!(handshake(&[(name, value)]), (code, None), "{name}: {value}");
        }
    }

    #[test]
    fn a_message_holds_one_event() {
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
