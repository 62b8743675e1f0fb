//! `/statusz` (versions and paths) and `/flagz` (flags), as text and as documents of the group `config.k8s.io` (KEP-4827,
//! KEP-4828).

use std::collections::{BTreeMap, BTreeSet};

use base::clock;
use base::request::{Feature, FeatureGates};
use http::header::{ACCEPT, CONTENT_TYPE, WARNING};
use http::{HeaderMap, Response, StatusCode};
use machinery::status::Reason;
use machinery::{Release, Status, Text, Value, json, time};

use super::body::Body;
use super::health::KUBERNETES_VERSION;
use super::negotiate::{self, Accepted, Clause, Media};
use super::respond::{self, Reply, header, set};

/// First segments of paths that serve the API itself, which `/statusz` does not list.
const API_PATHS: [&str; 5] = ["/.well-known", "/api", "/apis", "/openapi", "/openid"];

/// The separators of names and values: kube-apiserver chooses any of these, so that programs do not parse the text.
const DELIMITERS: [&str; 4] = [":", ": ", "=", " "];

const GROUP: &str = "config.k8s.io";
const VERSIONS: [&str; 2] = ["v1alpha1", "v1beta1"];
const DEPRECATED_VERSION: &str = "v1alpha1";
const TEXT: &str = "text/plain";

/// One of the two pages.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ZPage {
    Statusz,
    Flagz,
}

impl ZPage {
    fn path(self) -> &'static str {
        match self {
            ZPage::Statusz => "/statusz",
            ZPage::Flagz => "/flagz",
        }
    }

    fn kind(self) -> &'static str {
        match self {
            ZPage::Statusz => "Statusz",
            ZPage::Flagz => "Flagz",
        }
    }
}

/// The form of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PageForm {
    Text,
    Document { accepted: Accepted, version: &'static str },
}

/// The state of both pages.
pub struct ZPages {
    enabled: Vec<ZPage>,
    release: Release,
    /// When the server was started, in seconds since 1970.
    started: i64,
    flags: BTreeMap<String, String>,
}

impl ZPages {
    pub fn new(gates: &FeatureGates, release: Release, flags: BTreeMap<String, String>) -> ZPages {
        let pages = [(ZPage::Flagz, Feature::Flagz), (ZPage::Statusz, Feature::Statusz)];
        let enabled = pages.into_iter().filter(|(_, gate)| gates.has(*gate)).map(|(page, _)| page).collect();
        ZPages { enabled, release, started: clock::machine_seconds(), flags }
    }

    /// The paths of the enabled pages.
    pub fn paths(&self) -> impl Iterator<Item = &'static str> {
        self.enabled.iter().map(|page| page.path())
    }

    /// The response for the path of an enabled page; `None` for other paths. `index` returns the paths that `/` lists.
    pub fn respond(
        &self,
        path: &str,
        headers: &HeaderMap,
        reply: &Reply,
        index: impl FnOnce() -> BTreeSet<String>,
    ) -> Option<Response<Body>> {
        let page = *self.enabled.iter().find(|page| page.path() == path)?;
        let accept = header(headers, ACCEPT);
        Some(match form(page, accept, reply.served) {
            None => not_acceptable(accept, reply),
            Some(PageForm::Text) => plain(&self.text(page, index)),
            Some(PageForm::Document { accepted, version }) => {
                let document = self.document(page, version, index);
                let mut response = reply.tree(StatusCode::OK, &document, &accepted);
                let form = format!("{};g={GROUP};v={version};as={}", accepted.media.as_str(), page.kind());
                set(response.headers_mut(), CONTENT_TYPE.as_str(), &form);
                if version == DEPRECATED_VERSION {
                    set(response.headers_mut(), WARNING.as_str(), &deprecation(page));
                }
                response
            }
        })
    }

    fn text(&self, page: ZPage, index: impl FnOnce() -> BTreeSet<String>) -> String {
        let delimiter = DELIMITERS[clock::random_below(DELIMITERS.len() as u64) as usize];
        let head = format!(
            "\napiserver {}\nWarning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for debugging purposes only.\n",
            page.path().trim_start_matches('/')
        );
        if page == ZPage::Flagz {
            let lines = self.flags.iter().map(|(name, value)| format!("{name}{delimiter}{value}\n"));
            return head + &lines.collect::<String>();
        }
        let up = self.uptime();
        let up = format!("{} hr {:02} min {:02} sec", up / 3600, up / 60 % 60, up % 60);
        let paths = debugging_paths(&index()).join(" ");
        let lines = [
            ("Started", time::unix_date(self.started)),
            ("Up", up),
            ("Go version", "none".to_owned()),
            ("Binary version", binary_version()),
            ("Emulation version", self.release.to_string()),
            ("Paths", paths),
        ];
        let lines = lines.iter().map(|(name, value)| format!("{name}{delimiter} {value}\n"));
        format!("{head}\n{}", lines.collect::<String>())
    }

    fn document(&self, page: ZPage, version: &str, index: impl FnOnce() -> BTreeSet<String>) -> Value {
        let text = |text: &str| Value::from(text);
        let mut document = json!({
            "kind": (page.kind()),
            "apiVersion": (format!("{GROUP}/{version}")),
            "metadata": {"name": "apiserver"},
        });
        if page == ZPage::Flagz {
            let flags = self.flags.iter().map(|(name, value)| (Text::from(name.as_str()), text(value)));
            document.set_at(&["flags"], Value::Object(flags.collect()));
            return document;
        }
        for (name, value) in [
            ("startTime", text(&time::rfc3339(self.started))),
            ("uptimeSeconds", Value::from(self.uptime())),
            ("goVersion", text("none")),
            ("binaryVersion", text(&binary_version())),
            ("emulationVersion", text(&self.release.to_string())),
            ("paths", debugging_paths(&index()).into_iter().map(Value::from).collect()),
        ] {
            document.set_at(&[name], value);
        }
        document
    }

    fn uptime(&self) -> i64 {
        clock::machine_seconds() - self.started
    }
}

fn binary_version() -> String {
    let (major, minor, patch) = KUBERNETES_VERSION;
    format!("{major}.{minor}.{patch}")
}

/// The first segments of the served paths, without those of the API.
fn debugging_paths(index: &BTreeSet<String>) -> Vec<String> {
    let first = |path: &String| Some(format!("/{}", path.split('/').nth(1).filter(|segment| !segment.is_empty())?));
    let folders: BTreeSet<String> = index.iter().filter_map(first).collect();
    folders.into_iter().filter(|folder| !API_PATHS.contains(&folder.as_str())).collect()
}

/// The best form that the client accepts. A client gets a document only if it names the group, version and kind.
fn form(page: ZPage, accept: &str, served: &[Media]) -> Option<PageForm> {
    if accept.trim().is_empty() {
        return Some(PageForm::Text);
    }
    negotiate::clauses(accept).iter().find_map(|clause| {
        let wanted = clause.param("as").filter(|kind| !kind.is_empty());
        match wanted {
            None => clause.matches(TEXT).then_some(PageForm::Text),
            Some(kind) if kind == page.kind() && clause.param("g") == Some(GROUP) => document_form(clause, served),
            Some(_) => None,
        }
    })
}

fn document_form(clause: &Clause<'_>, served: &[Media]) -> Option<PageForm> {
    let version = VERSIONS.into_iter().find(|version| clause.param("v") == Some(version))?;
    let media = served.iter().copied().find(|media| *media != Media::Protobuf && clause.matches(media.as_str()))?;
    let pretty = clause.param("pretty").map(|pretty| pretty == "1");
    Some(PageForm::Document { accepted: Accepted { media, pretty, ..Accepted::JSON }, version })
}

/// The 406 of these pages, in a text form that the client accepts, or in JSON.
fn not_acceptable(accept: &str, reply: &Reply) -> Response<Body> {
    let mut available = vec!["application/json", "application/yaml", TEXT];
    available.extend(reply.served.contains(&Media::Cbor).then_some(Media::Cbor.as_str()));
    let message = format!("only the following media types are accepted: {}", available.join(", "));
    let without_protobuf: Vec<Media> = reply.served.iter().copied().filter(|media| *media != Media::Protobuf).collect();
    let plain = negotiate::negotiate_whole(&without_protobuf, accept);
    reply.status_in(&Status::new(Reason::NotAcceptable, message), plain.first().copied())
}

fn deprecation(page: ZPage) -> String {
    let name = page.path().trim_start_matches('/');
    format!("299 - \"This version of the {name} endpoint is deprecated. Please use a newer version.\"")
}

fn plain(text: &str) -> Response<Body> {
    let mut response = respond::text(200, text);
    response.headers_mut().remove("x-content-type-options");
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_requested_by_kind() {
        let form = |accept: &str| match form(ZPage::Statusz, accept, &Media::USUAL) {
            None => "none".to_owned(),
            Some(PageForm::Text) => "text".to_owned(),
            Some(PageForm::Document { accepted, version }) => format!("{} {version}", accepted.media.as_str()),
        };
        for (accept, expected) in [
            ("", "text"),
            ("*/*", "text"),
            ("text/*", "text"),
            ("text/plain", "text"),
            ("application/json, text/plain;q=0.5", "text"),
            ("application/json", "none"),
            ("application/*", "none"),
            ("text/html", "none"),
            ("text/plain;g=config.k8s.io;v=v1beta1;as=Statusz", "none"),
            ("application/json;as=Statusz", "none"),
            ("application/json;g=config.k8s.io;v=v1;as=Statusz", "none"),
            ("application/json;g=config.k8s.io;v=v1beta1;as=Flagz", "none"),
            ("application/cbor;g=config.k8s.io;v=v1beta1;as=Statusz", "none"),
            ("application/vnd.kubernetes.protobuf;g=config.k8s.io;v=v1beta1;as=Statusz", "none"),
            ("application/json;g=config.k8s.io;v=v1alpha1;as=Statusz", "application/json v1alpha1"),
            ("application/yaml;g=config.k8s.io;v=v1beta1;as=Statusz", "application/yaml v1beta1"),
            ("*/*;g=config.k8s.io;v=v1beta1;as=Statusz", "application/json v1beta1"),
        ] {
            assert_eq!(form(accept), expected, "{accept}");
        }
    }

    #[test]
    fn paths_of_the_api_are_not_listed() {
        let index = ["/", "/api/v1", "/apis", "/healthz", "/healthz/ping", "/metrics", "/statusz"];
        let index = index.into_iter().map(str::to_owned).collect();
        assert_eq!(debugging_paths(&index), ["/healthz", "/metrics", "/statusz"]);
    }
}
