//! Clients that send HTTP without TLS: they get a response that says so, as Go's server sends it.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::limits;

/// How requests begin. A TLS record begins with byte 22.
const BEGINNINGS: [&[u8]; 8] = [b"GET /", b"HEAD ", b"POST ", b"PUT /", b"PATCH", b"DELET", b"OPTIO", b"PRI *"];
const RESPONSE: &[u8] = b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";

/// Waits for the first bytes of a connection, and returns whether they begin an HTTP request.
pub async fn is_http(stream: &TcpStream) -> bool {
    let mut first = [0; 5];
    let count = stream.peek(&mut first).await.unwrap_or_default();
    count > 0 && BEGINNINGS.iter().any(|beginning| beginning.starts_with(&first[..count]))
}

/// Refuses the request. What the client has sent is read, since closing a connection with unread bytes resets it, and the
/// response could be lost.
pub async fn refuse(mut stream: TcpStream) -> std::io::Result<()> {
    stream.write_all(RESPONSE).await?;
    stream.shutdown().await?;
    let mut rest = stream.take(limits::PLAIN_BYTES_MAX);
    tokio::io::copy(&mut rest, &mut tokio::io::sink()).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    #[tokio::test]
    async fn requests_without_tls_are_recognized() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        for (sent, wanted) in [
            ("GET /api", true),
            ("PO", true),
            ("PATCH /a", true),
            ("\u{16}\u{3}\u{1}", false),
            ("GOT", false),
            ("", false),
        ] {
            let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            client.write_all(sent.as_bytes()).await.unwrap();
            client.shutdown().await.unwrap();
            let (stream, _) = listener.accept().await.unwrap();
            assert_eq!(is_http(&stream).await, wanted, "{sent:?}");
            if wanted {
                refuse(stream).await.unwrap();
                let mut response = vec![];
                client.read_to_end(&mut response).await.unwrap();
                assert_eq!(response, RESPONSE);
            }
        }
    }
}
