//! RequestInfo: the parts of a path and the verb that follows from them.

use machinery::{Text, url};

use super::options::ListOptions;
use super::query::Query;

machinery::text_enum! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Verb {
        Get = "get",
        List = "list",
        Watch = "watch",
        Create = "create",
        Update = "update",
        Patch = "patch",
        Delete = "delete",
        DeleteCollection = "deletecollection",
        /// The deprecated proxy form of a path.
        Proxy = "proxy",
        /// A method without a verb, such as OPTIONS.
        None = "",
    }
}

/// A parsed request line.
#[derive(Clone, Debug)]
pub struct RequestInfo {
    pub method: http::Method,
    /// Percent-decoded.
    pub path: String,
    pub query: Query,
    pub verb: Verb,
    /// Whether the path is one of a resource; otherwise the fields below are empty.
    pub is_resource: bool,
    pub group: Text,
    pub version: Text,
    pub namespace: Text,
    pub resource: Text,
    pub name: Text,
    pub subresource: Text,
    /// The number of path segments after the subresource.
    pub rest: usize,
    /// The deprecated `/watch/` form.
    pub watch_path: bool,
    /// The path has two slashes before the group, which matches no route.
    pub malformed: bool,
    /// The path ends at `/watch` or `/proxy`, which names no resource.
    pub is_unfinished: bool,
    /// The namespace segment of the path is empty.
    pub has_empty_namespace: bool,
}

impl RequestInfo {
    /// The method and the path with placeholders for names, the span name of traces: equal for all requests of a kind.
    pub fn pattern(&self) -> String {
        if !self.is_resource {
            return self.method.to_string();
        }
        let (root, group) =
            if self.group.is_empty() { ("api", String::new()) } else { ("apis", format!("/{}", self.group)) };
        let namespace = if self.namespace.is_empty() { "" } else { "/namespaces/{:namespace}" };
        let name = if self.name.is_empty() { "" } else { "/{:name}" };
        let sub = if self.subresource.is_empty() { String::new() } else { format!("/{}", self.subresource) };
        format!("{} /{root}{group}/{}{namespace}/{}{name}{sub}", self.method, self.version, self.resource)
    }

    pub fn parse(method: &http::Method, raw_path: &str, raw_query: &str) -> RequestInfo {
        let path = url::decode(raw_path).unwrap_or_else(|| raw_path.to_owned());
        let mut info = RequestInfo {
            method: method.clone(),
            path: String::new(),
            query: Query::parse(raw_query),
            verb: Verb::None,
            is_resource: false,
            group: Text::default(),
            version: Text::default(),
            namespace: Text::default(),
            resource: Text::default(),
            name: Text::default(),
            subresource: Text::default(),
            rest: 0,
            watch_path: false,
            malformed: false,
            is_unfinished: false,
            has_empty_namespace: false,
        };
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        info.malformed = path.starts_with("//") || path.starts_with("/apis//");
        info.parse_parts(&parts);
        if info.is_resource {
            info.verb = info.verb_of();
        }
        info.path = path;
        info
    }

    fn parse_parts(&mut self, parts: &[&str]) {
        let mut rest = match parts {
            ["api", version, rest @ ..] if !rest.is_empty() => {
                self.version = (*version).into();
                rest
            }
            ["apis", group, version, rest @ ..] if !rest.is_empty() => {
                self.group = (*group).into();
                self.version = (*version).into();
                rest
            }
            _ => return,
        };
        self.is_resource = true;
        self.is_unfinished = matches!(rest, ["watch" | "proxy"]);
        if let ["watch", after @ ..] = rest
            && !after.is_empty()
        {
            self.watch_path = true;
            rest = after;
        } else if let ["proxy", after @ ..] = rest
            && !after.is_empty()
        {
            self.verb = Verb::Proxy;
            rest = after;
        }
        if let ["namespaces", namespace, after @ ..] = rest {
            self.namespace = (*namespace).into();
            let own = matches!(after, [] | ["status" | "finalize", ..]);
            if !own {
                self.has_empty_namespace = namespace.is_empty();
                rest = after;
            }
        }
        let text = |i: usize| rest.get(i).map_or(Text::default(), |s| Text::from(*s));
        (self.resource, self.name, self.subresource) = (text(0), text(1), text(2));
        self.rest = rest.len().saturating_sub(3);
    }

    fn verb_of(&self) -> Verb {
        if self.watch_path {
            return Verb::Watch;
        }
        if self.verb == Verb::Proxy {
            return Verb::Proxy;
        }
        match self.method.as_str() {
            "POST" => Verb::Create,
            "GET" | "HEAD" if !self.name.is_empty() => Verb::Get,
            "GET" | "HEAD" if self.query.flag("watch") => Verb::Watch,
            "GET" | "HEAD" => Verb::List,
            "PUT" => Verb::Update,
            "PATCH" => Verb::Patch,
            "DELETE" if self.name.is_empty() => Verb::DeleteCollection,
            "DELETE" => Verb::Delete,
            _ => Verb::None,
        }
    }

    /// Whether a request may last for any time: `?timeout` does not apply to it. These are watches and the subresources that
    /// stream, whatever the resource.
    pub fn is_long_running(&self) -> bool {
        let streams = ["attach", "exec", "log", "portforward", "proxy"];
        matches!(self.verb, Verb::Watch | Verb::Proxy)
            || self.is_resource && streams.contains(&self.subresource.as_str())
    }

    /// The name to authorize: the name in the path or, for list and watch, the name in a field selector
    /// `metadata.name=…`. Selectors are ignored for the deprecated `/watch/` form, and where another option cannot be
    /// read.
    pub fn authorized_name(&self) -> Text {
        if !self.name.is_empty() || self.watch_path || !matches!(self.verb, Verb::List | Verb::Watch) {
            return self.name.clone();
        }
        if !self.query.has("fieldSelector") {
            return Text::default();
        }
        ListOptions::read(&self.query)
            .ok()
            .and_then(|options| options.field_selector.exact("metadata.name").cloned())
            .filter(|name| machinery::names::path_segment(name).is_empty())
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths() {
        let cases = [
            ("GET", "/api/v1/namespaces/a/configmaps/b", "get   v1 a configmaps b "),
            ("GET", "/api/v1/namespaces/a", "get   v1 a namespaces a "),
            ("PUT", "/api/v1/namespaces/a/finalize", "update   v1 a namespaces a finalize"),
            ("GET", "/apis/g.io/v1/foos?watch", "watch g.io  v1  foos  "),
            ("GET", "/apis/g.io/v1/foos/", "list g.io  v1  foos  "),
            ("GET", "/apis/g.io/v1/namespaces//foos", "list g.io  v1  foos  "),
            ("DELETE", "/apis/g.io/v1/namespaces/n/foos", "deletecollection g.io  v1 n foos  "),
            ("PATCH", "/apis/g.io/v1/namespaces/n/foos/x%2Fstatus", "patch g.io  v1 n foos x status"),
            ("GET", "/apis/g.io/v1/watch/namespaces/n/foos", "watch g.io  v1 n foos  "),
            ("OPTIONS", "/apis/g.io/v1/foos", " g.io  v1  foos  "),
        ];
        for (method, uri, want) in cases {
            let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
            let i = RequestInfo::parse(&method.parse().unwrap(), path, query);
            let got = format!(
                "{} {}  {} {} {} {} {}",
                i.verb.as_str(),
                i.group,
                i.version,
                i.namespace,
                i.resource,
                i.name,
                i.subresource
            );
            assert_eq!(got, want, "{uri}");
        }
        assert!(!RequestInfo::parse(&http::Method::GET, "/apis/g.io/v1", "").is_resource);
    }

    #[test]
    fn streams_are_long_running() {
        let cases = [
            ("GET", "/api/v1/pods?watch=1", true),
            ("OPTIONS", "/api/v1/namespaces/n/pods/p/proxy/x", true),
            ("GET", "/api/v1/namespaces/n/pods/p/log", true),
            ("GET", "/apis/g.io/v1/foos/x/exec", true),
            ("GET", "/api/v1/namespaces/n/pods/p/status", false),
            ("GET", "/healthz", false),
        ];
        for (method, uri, want) in cases {
            let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
            let info = RequestInfo::parse(&method.parse().unwrap(), path, query);
            assert_eq!(info.is_long_running(), want, "{uri}");
        }
    }

    #[test]
    fn field_selector_names_are_authorized() {
        let cases = [
            ("/api/v1/configmaps", "fieldSelector=metadata.name%3Dx", "x"),
            ("/api/v1/configmaps", "watch=1&fieldSelector=metadata.name%3Dx", "x"),
            ("/api/v1/configmaps", "fieldSelector=metadata.name%21%3Dx", ""),
            ("/api/v1/configmaps", "fieldSelector=metadata.name%3Da%2Fb", ""),
            ("/api/v1/configmaps", "fieldSelector=metadata.name%3Dx&limit=x", ""),
            ("/api/v1/configmaps", "fieldSelector=metadata.name%3Dx&labelSelector=%3D", ""),
            ("/api/v1/watch/configmaps", "fieldSelector=metadata.name%3Dx", ""),
            ("/api/v1/watch/namespaces/n/configmaps/y", "fieldSelector=metadata.name%3Dx", "y"),
        ];
        for (path, query, want) in cases {
            assert_eq!(RequestInfo::parse(&http::Method::GET, path, query).authorized_name(), *want, "{path}?{query}");
        }
    }
}
