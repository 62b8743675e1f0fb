//! A bucket of an S3-compatible object store: put, get, list and delete, with signatures of version 4
//! (https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html).
//!
//! The crate `object_store` is not used: it would bring a second HTTP client, a second URL parser and some ninety packages for
//! these four requests.

use std::path::Path;
use std::sync::Arc;

use aws_lc_rs::hmac;
use base::digest;
use bytes::Bytes;
use clap::Args;
use futures_util::stream;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Empty, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use machinery::url::Url;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::name::StoredFile;
use crate::limits;

/// How a bucket is reached. Credentials are in the environment, as for other programs: `AWS_ACCESS_KEY_ID`,
/// `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`.
#[derive(Args, Clone, Debug)]
pub struct S3Flags {
    /// URL of the object store of s3:// targets [default: that of AWS in the region].
    #[arg(long, value_name = "URL", env = "AWS_ENDPOINT_URL", help_heading = "Backups")]
    pub backup_s3_endpoint: Option<String>,

    /// Region of s3:// targets.
    #[arg(long, value_name = "NAME", env = "AWS_REGION", default_value = "us-east-1", help_heading = "Backups")]
    pub backup_s3_region: String,
}

/// A bucket, and the credentials for it.
pub struct Bucket {
    name: String,
    /// Prefix of the keys of backups, empty or with a slash at the end.
    prefix: String,
    is_tls: bool,
    /// `HOST[:PORT]` of the object store.
    authority: String,
    region: String,
    access_key: String,
    secret_key: String,
    session_token: Option<String>,
}

/// A stream of bytes, with or without TLS.
trait Io: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Io for T {}

type Body = BoxBody<Bytes, std::io::Error>;

/// A request that has yet to be signed.
struct Call<'a> {
    method: Method,
    /// The key of an object; empty for the bucket.
    key: &'a str,
    /// Parameters, sorted by name.
    query: &'a [(&'a str, &'a str)],
    /// The SHA-256 of the body, hexadecimal.
    digest: String,
    length: u64,
    body: Body,
}

impl<'a> Call<'a> {
    fn without_body(method: Method, key: &'a str, query: &'a [(&'a str, &'a str)]) -> Call<'a> {
        let body = Empty::new().map_err(|never| match never {}).boxed();
        Call { method, key, query, digest: digest::sha256_hex(b""), length: 0, body }
    }
}

impl Bucket {
    /// The bucket of `BUCKET[/PREFIX]`, with credentials from the environment.
    ///
    /// # Errors
    ///
    /// One line: the endpoint is no URL, or credentials are missing.
    pub fn of(place: &str, flags: &S3Flags) -> Result<Bucket, String> {
        let (name, prefix) = place.split_once('/').unwrap_or((place, ""));
        if name.is_empty() {
            return Err(format!("s3://{place}: wanted s3://BUCKET[/PREFIX]"));
        }
        let prefix = prefix.trim_matches('/');
        let region = flags.backup_s3_region.clone();
        let aws = || format!("https://s3.{region}.amazonaws.com");
        let endpoint = flags.backup_s3_endpoint.clone().unwrap_or_else(aws);
        let url = Url::parse(&endpoint).map_err(|error| format!("--backup-s3-endpoint: {endpoint:?}: {error}"))?;
        if !["http", "https"].contains(&url.scheme.as_str()) || url.host.is_empty() {
            return Err(format!("--backup-s3-endpoint: {endpoint:?}: wanted http[s]://HOST[:PORT]"));
        }
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let needed = |name: &str| variable(name).ok_or_else(|| format!("s3://{place}: the environment lacks {name}"));
        Ok(Bucket {
            name: name.to_owned(),
            prefix: if prefix.is_empty() { String::new() } else { format!("{prefix}/") },
            is_tls: url.scheme == "https",
            authority: url.host.clone(),
            region,
            access_key: needed("AWS_ACCESS_KEY_ID")?,
            secret_key: needed("AWS_SECRET_ACCESS_KEY")?,
            session_token: variable("AWS_SESSION_TOKEN"),
        })
    }

    /// The files under the prefix.
    pub async fn list(&self) -> Result<Vec<StoredFile>, String> {
        let mut files = vec![];
        let mut token = String::new();
        loop {
            let mut query = vec![("list-type", "2"), ("prefix", self.prefix.as_str())];
            if !token.is_empty() {
                query.insert(0, ("continuation-token", token.as_str()));
            }
            let response = self.send(Call::without_body(Method::GET, "", &query)).await?;
            let page = self.text(response).await?;
            for entry in elements(&page, "Contents") {
                let text = |name: &str| elements(entry, name).next().map(unescaped).unwrap_or_default();
                let key = text("Key");
                let name = key.strip_prefix(&self.prefix).unwrap_or(&key).to_owned();
                files.push(StoredFile { name, bytes: text("Size").parse().unwrap_or_default() });
            }
            token = elements(&page, "NextContinuationToken").next().map(unescaped).unwrap_or_default();
            if token.is_empty() {
                return Ok(files);
            }
        }
    }

    /// Uploads a file.
    pub async fn put(&self, local: &Path, name: &str) -> Result<(), String> {
        let unreadable = |error: std::io::Error| format!("cannot read {}: {error}", local.display());
        let (digest, length) = base::task::blocking(|| digest_of(local)).map_err(unreadable)?;
        let file = tokio::fs::File::open(local).await.map_err(unreadable)?;
        let chunks = stream::try_unfold(file, async |mut file| {
            let mut chunk = vec![0; limits::UPLOAD_CHUNK];
            let read = file.read(&mut chunk).await?;
            chunk.truncate(read);
            Ok((read > 0).then(|| (Frame::data(Bytes::from(chunk)), file)))
        });
        let key = format!("{}{name}", self.prefix);
        let body = BodyExt::boxed(StreamBody::new(chunks));
        let call = Call { method: Method::PUT, key: &key, query: &[], digest, length, body };
        let response = self.send(call).await?;
        self.text(response).await.map(drop)
    }

    /// Downloads a file.
    pub async fn get(&self, name: &str, local: &Path) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("cannot write {}: {error}", local.display());
        let key = format!("{}{name}", self.prefix);
        let mut response = self.send(Call::without_body(Method::GET, &key, &[])).await?;
        if !response.status().is_success() {
            return self.text(response).await.map(drop);
        }
        let mut file = tokio::fs::File::create(local).await.map_err(failed)?;
        while let Some(frame) = response.frame().await {
            let frame = frame.map_err(|error| format!("{}: the response ended early: {error}", self.authority))?;
            if let Some(data) = frame.data_ref() {
                file.write_all(data).await.map_err(failed)?;
            }
        }
        file.sync_all().await.map_err(failed)
    }

    pub async fn remove(&self, name: &str) -> Result<(), String> {
        let key = format!("{}{name}", self.prefix);
        let response = self.send(Call::without_body(Method::DELETE, &key, &[])).await?;
        self.text(response).await.map(drop)
    }

    /// Connects and sends a request; the driver of the connection ends with it.
    #[allow(clippy::disallowed_methods, reason = "the driver ends with its connection")]
    async fn send(&self, call: Call<'_>) -> Result<Response<Incoming>, String> {
        let request = self.signed(call, &base::clock::now_rfc3339()).map_err(|error| error.to_string())?;
        let failed = |error: String| format!("{}: {error}", self.authority);
        let exchange = async {
            let stream = TokioIo::new(self.connect().await?);
            let (mut sender, driver) =
                hyper::client::conn::http1::handshake(stream).await.map_err(|error| failed(error.to_string()))?;
            drop(tokio::task::spawn(driver));
            sender.send_request(request).await.map_err(|error| failed(error.to_string()))
        };
        let response = tokio::time::timeout(limits::UPLOAD_TIME, exchange).await;
        response.map_err(|_| failed("no response within the time limit".to_owned()))?
    }

    async fn connect(&self) -> Result<Box<dyn Io>, String> {
        let failed = |error: String| format!("cannot connect to {}: {error}", self.authority);
        let default_port = if self.is_tls { 443 } else { 80 };
        let has_port = self.authority.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let address = if has_port { self.authority.clone() } else { format!("{}:{default_port}", self.authority) };
        let stream = tokio::net::TcpStream::connect(&address).await.map_err(|error| failed(error.to_string()))?;
        if !self.is_tls {
            return Ok(Box::new(stream));
        }
        let host = address.rsplit_once(':').map_or("", |(host, _)| host).trim_matches(['[', ']']).to_owned();
        let name = rustls::pki_types::ServerName::try_from(host).map_err(|error| failed(error.to_string()))?;
        let mut roots = rustls::RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| failed(error.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let tls = tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, stream).await;
        tls.map(|tls| Box::new(tls) as Box<dyn Io>).map_err(|error| failed(error.to_string()))
    }

    /// The request with its signature; `time` is RFC 3339.
    fn signed(&self, call: Call<'_>, time: &str) -> Result<Request<Body>, hyper::http::Error> {
        let time: String = time.chars().filter(|c| !matches!(c, '-' | ':')).collect();
        let path = format!("/{}/{}", escaped(&self.name, false), escaped(call.key, true));
        let parameters = call.query.iter().map(|(name, value)| format!("{name}={}", escaped(value, false)));
        let query = parameters.collect::<Vec<_>>().join("&");
        let mut headers = vec![
            ("host", self.authority.clone()),
            ("x-amz-content-sha256", call.digest.clone()),
            ("x-amz-date", time.clone()),
        ];
        headers.extend(self.session_token.clone().map(|token| ("x-amz-security-token", token)));
        let names = headers.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(";");
        let lines: String = headers.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
        let (method, digest) = (&call.method, &call.digest);
        let canonical = format!("{method}\n{path}\n{query}\n{lines}\n{names}\n{digest}");
        let date = &time[..8];
        let scope = format!("{date}/{}/s3/aws4_request", self.region);
        let to_sign = format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{}", digest::sha256_hex(canonical.as_bytes()));
        let first_key = format!("AWS4{}", self.secret_key).into_bytes();
        let parts = [date, self.region.as_str(), "s3", "aws4_request"];
        let key = parts.iter().fold(first_key, |key, part| keyed_hash(&key, part.as_bytes()));
        let signature = hexadecimal(&keyed_hash(&key, to_sign.as_bytes()));
        let access_key = &self.access_key;
        let authorization =
            format!("AWS4-HMAC-SHA256 Credential={access_key}/{scope}, SignedHeaders={names}, Signature={signature}");
        let target = if query.is_empty() { path } else { format!("{path}?{query}") };
        let mut request = Request::builder().method(call.method).uri(target);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        request.header("authorization", authorization).header("content-length", call.length).body(call.body)
    }

    /// The body of a successful response, as text.
    async fn text(&self, response: Response<Incoming>) -> Result<String, String> {
        let status = response.status();
        let limited = http_body_util::Limited::new(response.into_body(), limits::LISTING_BYTES_MAX);
        let body = limited.collect().await.map_err(|error| format!("{}: {error}", self.authority))?;
        let text = String::from_utf8_lossy(&body.to_bytes()).into_owned();
        if status.is_success() {
            return Ok(text);
        }
        let part = |name: &str| elements(&text, name).next().map(unescaped).unwrap_or_default();
        Err(format!("{}: status {}: {} {}", self.authority, status.as_u16(), part("Code"), part("Message")))
    }
}

/// The SHA-256 of a file, hexadecimal, and its length in bytes.
fn digest_of(path: &Path) -> std::io::Result<(String, u64)> {
    use std::io::Read as _;
    let (mut file, mut sum, mut length) = (std::fs::File::open(path)?, digest::Sha256::default(), 0);
    let mut chunk = vec![0; limits::UPLOAD_CHUNK];
    loop {
        let read = file.read(&mut chunk)?;
        if read == 0 {
            return Ok((sum.hex(), length));
        }
        sum.update(&chunk[..read]);
        length += read as u64;
    }
}

fn keyed_hash(key: &[u8], message: &[u8]) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), message).as_ref().to_vec()
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Percent-encodes all bytes except letters, digits and `-._~`; slashes of a path stay.
fn escaped(text: &str, is_path: bool) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => escaped.push(char::from(byte)),
            b'/' if is_path => escaped.push('/'),
            _ => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}

/// The contents of all elements with this name, which have no attributes in responses of S3.
fn elements<'x>(xml: &'x str, name: &str) -> impl Iterator<Item = &'x str> + use<'x> {
    let (start, end) = (format!("<{name}>"), format!("</{name}>"));
    let mut rest = xml;
    std::iter::from_fn(move || {
        let (_, from) = rest.split_once(&start)?;
        let (content, after) = from.split_once(&end)?;
        rest = after;
        Some(content)
    })
}

/// The text of an element, without entities.
fn unescaped(xml: &str) -> String {
    let entities = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&#39;", "'"), ("&#34;", "\"")];
    let text = entities.iter().fold(xml.to_owned(), |text, (entity, character)| text.replace(entity, character));
    text.replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example "GET Bucket (List Objects)" of the specification of signatures, with its key and its time.
    #[test]
    fn requests_are_signed() {
        let bucket = Bucket {
            name: "examplebucket".to_owned(),
            prefix: String::new(),
            is_tls: true,
            authority: "s3.amazonaws.com".to_owned(),
            region: "us-east-1".to_owned(),
            access_key: "AKIAIOSFODNN7EXAMPLE".to_owned(),
            secret_key: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".to_owned(),
            session_token: None,
        };
        let query = [("max-keys", "2"), ("prefix", "J")];
        let request = bucket.signed(Call::without_body(Method::GET, "", &query), "2013-05-24T00:00:00Z").unwrap();
        assert_eq!(request.uri(), "/examplebucket/?max-keys=2&prefix=J");
        let authorization = request.headers()["authorization"].to_str().unwrap();
        assert!(
            authorization.starts_with(
                "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, \
                 SignedHeaders=host;x-amz-content-sha256;x-amz-date, Signature="
            ),
            "{authorization}"
        );
    }

    #[test]
    fn keys_and_listings_are_read() {
        assert_eq!(escaped("a b/c+d", true), "a%20b/c%2Bd");
        assert_eq!(escaped("a/b", false), "a%2Fb");
        let xml = "<R><Contents><Key>a&amp;lt;b</Key></Contents><Contents><Key>c</Key></Contents></R>";
        let keys: Vec<String> =
            elements(xml, "Contents").filter_map(|c| elements(c, "Key").next().map(unescaped)).collect();
        assert_eq!(keys, ["a&lt;b", "c"]);
    }
}
