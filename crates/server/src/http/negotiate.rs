//! Content negotiation: the media type and the shape of a response.

use std::collections::HashMap;

use machinery::Status;
use machinery::status::Reason;

/// The content type of a watch in CBOR.
pub const CBOR_SEQUENCE: &str = "application/cbor-seq";

machinery::text_enum! {
    /// A media type of requests and responses.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Media {
        Json = "application/json",
        Yaml = "application/yaml",
        Protobuf = "application/vnd.kubernetes.protobuf",
        /// Behind the feature gate `CBORServingAndStorage`.
        Cbor = "application/cbor",
    }
}

impl Media {
    /// The media types that are not behind a feature gate.
    pub const USUAL: [Media; 3] = [Media::Json, Media::Yaml, Media::Protobuf];

    /// The media types that are served with these feature gates.
    pub fn served(cbor: bool) -> &'static [Media] {
        if cbor { &Media::ALL } else { &Media::USUAL }
    }

    /// Parses a `Content-Type` header. An empty one is JSON; well-formed parameters are ignored. `None` if the type is
    /// not served or a parameter is malformed.
    pub fn of_content_type(served: &[Media], text: &str) -> Option<Media> {
        if text.is_empty() {
            return Some(Media::Json);
        }
        let (name, parameters) = text.split_at(text.find(';').unwrap_or(text.len()));
        let name = name.trim().to_ascii_lowercase();
        served.iter().copied().find(|media| media.as_str() == name).filter(|_| are_parameters(parameters))
    }
}

/// Whether `text` is a list of parameters that Go's `mime.ParseMediaType` accepts: each is `;name=value`, where the
/// value is a token or a quoted string. A name may be repeated only with the same value, and a trailing semicolon is
/// allowed.
fn are_parameters(mut text: &str) -> bool {
    let mut seen: HashMap<String, &str> = HashMap::new();
    loop {
        text = text.trim_start();
        if matches!(text, "" | ";") {
            return true;
        }
        let Some((name, value, rest)) = parameter(text) else { return text.trim() == ";" };
        if seen.insert(name, value).is_some_and(|earlier| earlier != value) {
            return false;
        }
        text = rest;
    }
}

/// Parses the first parameter: its name in lower case, its value including quotes, and the remaining text.
fn parameter(text: &str) -> Option<(String, &str, &str)> {
    let text = text.strip_prefix(';')?.trim_start();
    let token_length = |text: &str| text.find(|c: char| !is_token(c)).unwrap_or(text.len());
    let (name, rest) = text.split_at(token_length(text));
    let rest = rest.trim_start().strip_prefix('=')?.trim_start();
    let end = match rest.strip_prefix('"') {
        None => token_length(rest),
        Some(quoted) => {
            let mut escaped = false;
            let closes = |c: char| {
                let closes = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                closes
            };
            // both quotes belong to the value
            quoted.find(closes)? + 2
        }
    };
    let (value, rest) = rest.split_at(end);
    (!name.is_empty() && !value.is_empty()).then(|| (name.to_ascii_lowercase(), value, rest))
}

/// Whether `c` may occur in a token (RFC 2045, section 5.1).
fn is_token(c: char) -> bool {
    c.is_ascii_graphic() && !"()<>@,;:\\\"/[]?=".contains(c)
}

/// The shape of an object in a response: `as=` of an Accept clause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    #[default]
    Whole,
    Table,
    Partial,
    PartialList,
}

/// An acceptable form of the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    pub media: Media,
    pub shape: Shape,
    /// Whether the shape is requested with `v=v1beta1`.
    pub beta: bool,
    /// `pretty=` of the clause, if it is present.
    pub pretty: Option<bool>,
}

impl Accepted {
    pub const JSON: Accepted = Accepted { media: Media::Json, shape: Shape::Whole, beta: false, pretty: None };

    pub fn shape_version(&self) -> &'static str {
        if self.beta { "meta.k8s.io/v1beta1" } else { "meta.k8s.io/v1" }
    }
}

/// One clause of an Accept header.
#[derive(Debug)]
pub struct Clause<'a> {
    pub kind: &'a str,
    pub subtype: &'a str,
    pub params: Vec<(&'a str, &'a str)>,
    q: f64,
}

/// The clauses of an Accept header by descending quality, then from specific to wildcard.
pub fn clauses(accept: &str) -> Vec<Clause<'_>> {
    let mut out: Vec<Clause<'_>> = accept.split(',').filter_map(clause).collect();
    let rank = |c: &Clause<'_>| (c.kind == "*", c.subtype == "*");
    out.sort_by(|a, b| b.q.total_cmp(&a.q).then_with(|| rank(a).cmp(&rank(b))));
    out
}

fn clause(text: &str) -> Option<Clause<'_>> {
    let mut parts = text.split(';').map(str::trim);
    let name = parts.next()?;
    let (kind, subtype) = match name.split_once('/') {
        Some((kind, subtype)) => (kind, subtype),
        None if name == "*" => ("*", "*"),
        None => return None,
    };
    let mut q = 1.0;
    let mut params = vec![];
    for part in parts {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        if key == "q" {
            q = value.parse().unwrap_or(0.0);
        } else {
            params.push((key, value));
        }
    }
    Some(Clause { kind, subtype, params, q })
}

impl Clause<'_> {
    pub fn param(&self, key: &str) -> Option<&str> {
        self.params.iter().find(|(k, _)| *k == key).map(|(_, v)| *v)
    }

    pub fn matches(&self, media: &str) -> bool {
        let (kind, subtype) = media.split_once('/').unwrap_or_default();
        (self.kind == "*" && self.subtype == "*")
            || (self.kind == kind && (self.subtype == "*" || self.subtype == subtype))
    }

    fn shape(&self) -> Option<(Shape, bool)> {
        let Some(name) = self.param("as").filter(|name| !name.is_empty()) else { return Some((Shape::Whole, false)) };
        let beta = match (self.param("g"), self.param("v")) {
            (Some("meta.k8s.io"), Some("v1")) => false,
            (Some("meta.k8s.io"), Some("v1beta1")) => true,
            _ => return None,
        };
        match name {
            "Table" => Some((Shape::Table, beta)),
            "PartialObjectMetadata" => Some((Shape::Partial, beta)),
            "PartialObjectMetadataList" => Some((Shape::PartialList, beta)),
            _ => None,
        }
    }

    fn accepted(&self, served: &[Media]) -> Vec<Accepted> {
        let Some((shape, beta)) = self.shape() else { return vec![] };
        let pretty = self.param("pretty").map(|value| value == "1");
        let is_text = |media: &Media| matches!(media, Media::Json | Media::Yaml);
        let is_accepted = |media: &Media| self.matches(media.as_str()) && (shape != Shape::Table || is_text(media));
        served.iter().copied().filter(is_accepted).map(|media| Accepted { media, shape, beta, pretty }).collect()
    }
}

/// All acceptable forms of the response, best first.
pub fn negotiate(served: &[Media], accept: &str) -> Vec<Accepted> {
    if accept.trim().is_empty() {
        return vec![Accepted::JSON];
    }
    clauses(accept).iter().flat_map(|clause| clause.accepted(served)).collect()
}

/// The acceptable forms of a response that can be neither a table nor partial objects, best first.
pub fn negotiate_whole(served: &[Media], accept: &str) -> Vec<Accepted> {
    let mut accepted = negotiate(served, accept);
    accepted.retain(|accepted| accepted.shape == Shape::Whole);
    accepted
}

/// Whether the Accept header names one of these media types or `*/*`, regardless of parameters. An empty header accepts
/// all of them.
pub fn lists(accept: &str, names: &[&str]) -> bool {
    let mut accepted = accept.split(',').filter_map(|clause| Some(clause.split(';').next()?.trim()));
    accept.is_empty() || accepted.any(|name| name == "*/*" || names.contains(&name))
}

/// The form of aggregated discovery if the best acceptable form is one; `None` otherwise.
pub fn aggregated(served: &[Media], accept: &str) -> Option<Accepted> {
    for clause in clauses(accept) {
        let Some(media) = served.iter().copied().find(|media| clause.matches(media.as_str())) else { continue };
        let name = clause.param("as").filter(|name| !name.is_empty())?;
        let group_version = (clause.param("g"), clause.param("v"));
        if name == "APIGroupDiscoveryList" && group_version == (Some("apidiscovery.k8s.io"), Some("v2")) {
            let pretty = clause.param("pretty").map(|v| v == "1");
            return Some(Accepted { media, pretty, ..Accepted::JSON });
        }
    }
    None
}

/// The 406 of custom resources, and of built-in resources that cannot be shown in the requested shape.
pub fn not_acceptable(served: &[Media]) -> Status {
    accepts_only(&media_list(served))
}

/// The same for watches.
pub fn stream_not_acceptable(served: &[Media]) -> Status {
    accepts_only(&stream_list(served))
}

fn accepts_only(list: &str) -> Status {
    Status::new(Reason::NotAcceptable, format!("only the following media types are accepted: {list}"))
}

/// The 406 of a route that serves none of the accepted media types. `available` is the list of those it serves.
pub fn not_available(available: &str) -> Status {
    let message = format!("406: Not Acceptable\n\nAvailable representations: {available}");
    Status::new(Reason::NotAcceptable, message).with_details(Default::default())
}

/// The content types of a watch, as error messages list them.
pub fn stream_list(served: &[Media]) -> String {
    let streamed = served.iter().filter(|media| **media != Media::Yaml);
    let stream = |media: &Media| match media {
        Media::Cbor => CBOR_SEQUENCE.to_owned(),
        media => format!("{};stream=watch", media.as_str()),
    };
    streamed.map(stream).collect::<Vec<_>>().join(", ")
}

/// The served media types, as error messages list them.
pub fn media_list(served: &[Media]) -> String {
    served.iter().map(|media| media.as_str()).collect::<Vec<_>>().join(", ")
}

/// The 415 of a request body in a media type that is not served.
pub fn unsupported_media_type(served: &[Media]) -> Status {
    let message = format!(
        "the body of the request was in an unknown format - accepted media types include: {}",
        media_list(served)
    );
    Status::new(Reason::UnsupportedMediaType, message)
}

/// The 415 of built-in routes, which check the Content-Type before the route is selected.
pub fn unsupported_body() -> Status {
    Status::new(Reason::UnsupportedMediaType, "415: Unsupported Media Type").with_details(Default::default())
}

/// Whether a route accepts the `Content-Type` of a request. An empty one is accepted; in a comma-separated list, one
/// match suffices.
pub fn takes(content_type: &str, served: &[Media]) -> bool {
    let names = content_type.split(',').map(|part| part.split(';').next().unwrap_or_default().trim());
    content_type.is_empty() || names.into_iter().any(|name| served.iter().any(|media| media.as_str() == name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_accept_served_content_types() {
        let served = [Media::Json, Media::Yaml];
        let taken = ["", "application/json", "application/json; charset=utf-8", "text/plain, application/yaml;x"];
        taken.iter().for_each(|given| assert!(takes(given, &served), "{given}"));
        let others = ["*/*", "text/plain", "application/vnd.kubernetes.protobuf", "application", ";"];
        others.iter().for_each(|given| assert!(!takes(given, &served), "{given}"));
    }

    #[test]
    fn accept_clauses_are_tried_in_order() {
        let served = Media::served(false);
        let first = |accept: &str| negotiate(served, accept).first().map(|a| (a.media, a.shape, a.beta));
        let json = Some((Media::Json, Shape::Whole, false));
        for accept in
            ["", "*/*", "application/*", "application/json;colour=red", "application/json;q=0", "text/html,*/*"]
        {
            assert_eq!(first(accept), json, "{accept}");
        }
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
        assert_eq!(first(table), Some((Media::Json, Shape::Table, false)));
        assert_eq!(
            first("application/json;as=Tabel;v=v1;g=meta.k8s.io,application/yaml"),
            Some((Media::Yaml, Shape::Whole, false))
        );
        assert_eq!(first("application/json;q=0.5,application/yaml"), Some((Media::Yaml, Shape::Whole, false)));
        for accept in ["APPLICATION/JSON", "text/plain", "application/json;as=Table;v=v2;g=meta.k8s.io"] {
            assert_eq!(first(accept), None, "{accept}");
        }
    }

    #[test]
    fn content_types_parse_like_go() {
        let media = |text: &str| Media::of_content_type(&Media::USUAL, text);
        for good in [
            "",
            "application/json",
            "APPLICATION/JSON ; charset=utf-8",
            "application/json;",
            "application/json; a=b; a=b;",
            r#"application/json; a="b\"; c" ; d=e"#,
            "application/json; charset*=utf-8''x",
        ] {
            assert_eq!(media(good), Some(Media::Json), "{good}");
        }
        for parameters in
            [";;", "; ;", "; a", "; a=", "; =a", "; a=b; a=c", "; a=b c", r#"; a="b"#, "; a=b;;", "; a/b=c"]
        {
            assert_eq!(media(&format!("application/json{parameters}")), None, "{parameters}");
        }
        for name in ["application", "application/json/x", "text/json", "/json", " "] {
            assert_eq!(media(name), None, "{name}");
        }
    }

    #[test]
    fn discovery_is_aggregated_if_it_is_preferred() {
        let all = "g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
        for (accept, media) in [
            (format!("application/json;{all}"), Some(Media::Json)),
            (format!("application/json;{all};profile=nopeer,application/json;q=0.9"), Some(Media::Json)),
            (format!("application/vnd.kubernetes.protobuf;{all},application/json"), Some(Media::Protobuf)),
            (format!("application/yaml;{all}"), Some(Media::Yaml)),
            (format!("application/cbor;{all}"), None),
            (format!("application/json,application/json;{all}"), None),
            (format!("application/json;{all};q=0.5,application/yaml"), None),
            (format!("application/json;{},application/json", all.replace("v2", "v2beta1")), None),
            (String::new(), None),
        ] {
            assert_eq!(aggregated(&Media::USUAL, &accept).map(|accepted| accepted.media), media, "{accept}");
        }
        let with_cbor = aggregated(Media::served(true), &format!("application/cbor;{all}"));
        assert_eq!(with_cbor.map(|accepted| accepted.media), Some(Media::Cbor));
    }

    #[test]
    fn cbor_requires_feature_gate() {
        let first = |cbor, accept| {
            let served = Media::served(cbor);
            negotiate(served, accept).first().map(|accepted| accepted.media)
        };
        let (plain, table) = ("application/cbor", "application/cbor;as=Table;v=v1;g=meta.k8s.io");
        assert_eq!([plain, table].map(|accept| first(false, accept)), [None, None]);
        assert_eq!([plain, table].map(|accept| first(true, accept)), [Some(Media::Cbor), None]);
        assert!(stream_not_acceptable(Media::served(true)).message.ends_with(CBOR_SEQUENCE));
    }
}
