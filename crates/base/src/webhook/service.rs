//! Addresses of Services. There is no cluster network: the addresses come from `--service-address`, or from the Service
//! object.

use std::collections::HashMap;

use machinery::Value;

use super::Endpoint;
use super::egress::Egress;
use super::error::{TransportError, Unresolved};

/// Host and port to connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    pub host: String,
    pub port: u16,
    /// The networks in which the host may be.
    pub egress: Egress,
}

/// Looks up a Service object by namespace and name.
pub type Lookup = Box<dyn Fn(&str, &str) -> Option<Value> + Send + Sync>;

/// Resolver of Services.
pub struct Services {
    /// By `namespace/name` or `namespace/name:port`.
    mapped: HashMap<String, Address>,
    lookup: Lookup,
    /// The networks in which hosts may be that configurations and Services name. `mapped` is the operator's.
    egress: Egress,
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

impl Address {
    /// Reads `host:port`.
    pub fn parse(text: &str) -> Result<Address, String> {
        let wrong = || format!("{text:?} is not HOST:PORT");
        let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() {
            return Err(wrong());
        }
        Ok(Address { host: host.to_owned(), port: port.parse().map_err(|_| wrong())?, egress: Egress::All })
    }
}

impl Default for Services {
    /// A resolver without Services.
    fn default() -> Services {
        Services::new(HashMap::new(), Box::new(|_, _| None))
    }
}

impl Services {
    pub fn new(mapped: HashMap<String, Address>, lookup: Lookup) -> Services {
        Services { mapped, lookup, egress: Egress::All }
    }

    /// The same, whose hosts are to be in these networks, except for those that are mapped.
    pub fn within(self, egress: Egress) -> Services {
        Services { egress, ..self }
    }

    /// The address to connect to.
    pub(super) fn address(&self, endpoint: &Endpoint) -> Result<Address, TransportError> {
        let Some((namespace, name)) = &endpoint.service else {
            return Ok(Address { host: endpoint.host.to_string(), port: endpoint.port, egress: self.egress.clone() });
        };
        let port = endpoint.port;
        self.locate(namespace, name, port).map_err(|why| TransportError::Service { name: name.clone(), port, why })
    }

    pub(super) fn locate(&self, namespace: &str, name: &str, port: u16) -> Result<Address, Unresolved> {
        let keys = [format!("{namespace}/{name}:{port}"), format!("{namespace}/{name}")];
        if let Some(address) = keys.iter().find_map(|key| self.mapped.get(key)) {
            return Ok(address.clone());
        }
        let service = (self.lookup)(namespace, name).ok_or(Unresolved::NotFound)?;
        let (host, port) = of_object(&service, port)?;
        Ok(Address { host, port, egress: self.egress.clone() })
    }
}

/// The address in a Service object: its external name or its cluster IP.
fn of_object(service: &Value, port: u16) -> Result<(String, u16), Unresolved> {
    if service.str_at(&["spec", "type"]) == "ExternalName" {
        return Ok((service.str_at(&["spec", "externalName"]).to_owned(), port));
    }
    let ports = service.items_at(&["spec", "ports"]);
    if !ports.iter().any(|p| p.get("port").and_then(Value::as_int) == Some(i64::from(port))) {
        return Err(Unresolved::NoPort);
    }
    match service.str_at(&["spec", "clusterIP"]) {
        "" | "None" => Err(Unresolved::NoAddress),
        ip => Ok((ip.to_owned(), port)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use machinery::json;

    #[test]
    fn services_resolve_by_map_then_object() {
        let lookup: Lookup = Box::new(|_, name| match name {
            "external" => Some(json!({"spec": {"type": "ExternalName", "externalName": "x.io"}})),
            "fixed" => Some(json!({"spec": {"clusterIP": "10.0.0.1", "ports": [{"port": 443}]}})),
            "headless" => Some(json!({"spec": {"clusterIP": "None", "ports": [{"port": 443}]}})),
            _ => None,
        });
        let mapped = [("n/mapped", "127.0.0.1:1"), ("n/mapped:8443", "127.0.0.1:2")];
        let mapped = mapped.map(|(key, at)| (key.to_owned(), Address::parse(at).unwrap()));
        let services = Services::new(mapped.into(), lookup);
        let cases = [
            ("mapped", 443, Ok("127.0.0.1:1")),
            ("mapped", 8443, Ok("127.0.0.1:2")),
            ("external", 443, Ok("x.io:443")),
            ("fixed", 443, Ok("10.0.0.1:443")),
            ("fixed", 80, Err("no service port 80 found for service \"fixed\"")),
            ("headless", 443, Err("service \"headless\" has no address here: give one with --service-address")),
            ("gone", 443, Err("service \"gone\" not found")),
        ];
        for (name, port, want) in cases {
            let endpoint = Endpoint::parse(&json!({"service": {"namespace": "n", "name": (name), "port": (port)}}));
            let found = services.address(&endpoint).map(|at| format!("{}:{}", at.host, at.port));
            let found = found.map_err(|error| error.to_string());
            assert_eq!(found, want.map(str::to_owned).map_err(str::to_owned), "{name}:{port}");
        }
        assert!(Address::parse("has_empty_namespace").is_err());
        assert_eq!(
            Address::parse("[::1]:2").unwrap(),
            Address { host: "::1".to_owned(), port: 2, egress: Egress::All }
        );
    }
}
