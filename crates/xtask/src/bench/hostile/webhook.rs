//! A webhook that responds with 60 MB that are not JSON.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, LazyLock};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use client::{Call, Result};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio_rustls::TlsAcceptor;

use super::inputs::MAPS;

const RESPONSE_BYTES: usize = 60 << 20;

/// The running webhook: its address, and its certificate in PEM.
struct Webhook {
    address: SocketAddr,
    certificate: String,
}

/// Started at its first use; it ends with the process.
static WEBHOOK: LazyLock<Result<Webhook>> = LazyLock::new(start);

fn start() -> Result<Webhook> {
    let key = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()])?;
    let (certificate, pem) = (key.cert.der().clone(), key.cert.pem());
    let private = rustls_pki_types::PrivatePkcs8KeyDer::from(key.signing_key.serialize_der());
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|config| config.with_no_client_auth().with_single_cert(vec![certificate], private.into()))?;
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime?;
    std::thread::spawn(move || runtime.block_on(serve(listener, TlsAcceptor::from(Arc::new(config)))));
    Ok(Webhook { address, certificate: pem })
}

async fn serve(listener: std::net::TcpListener, acceptor: TlsAcceptor) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    let body = Bytes::from("- a\n".repeat(RESPONSE_BYTES / 4));
    while let Ok((stream, _)) = listener.accept().await {
        let (acceptor, body) = (acceptor.clone(), body.clone());
        tokio::spawn(async move {
            let Ok(stream) = acceptor.accept(stream).await else { return };
            let respond = hyper::service::service_fn(move |request: Request<Incoming>| {
                let body = body.clone();
                async move {
                    let _ = request.into_body().collect().await;
                    Ok::<_, Infallible>(Response::new(Full::new(body)))
                }
            });
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), respond).await;
        });
    }
}

/// The configuration of the webhook, which sees only the ConfigMaps of [`labelled`].
pub fn configured() -> Vec<Call> {
    let Ok(Webhook { address, certificate }) = &*WEBHOOK else { return vec![] };
    let (url, bundle) = (format!("https://{address}/"), STANDARD.encode(certificate));
    let rule = r#"{"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"],"operations":["CREATE"]}"#;
    let hook = format!(
        r#"{{"name":"large.example.com","clientConfig":{{"url":"{url}","caBundle":"{bundle}"}},"rules":[{rule}],"objectSelector":{{"matchLabels":{{"hostile":"yes"}}}},"sideEffects":"None","admissionReviewVersions":["v1"],"timeoutSeconds":30}}"#
    );
    vec![Call::post(
        "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
        format!(
            r#"{{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfiguration","metadata":{{"name":"large"}},"webhooks":[{hook}]}}"#
        ),
    )]
}

/// An object that the webhook sees.
pub fn labelled() -> Vec<Call> {
    let body = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"seen","labels":{"hostile":"yes"}}}"#;
    vec![Call::post(MAPS, body)]
}
