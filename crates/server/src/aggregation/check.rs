//! Availability of aggregated API servers: the condition of their APIServices.

use base::request::User;
use base::webhook::{Address, Unresolved};
use bytes::Bytes;
use futures_util::future::select_ok;
use http::Request;
use http_body_util::Empty;
use kinds::SERVED_HERE;
use machinery::{Value, json};

use super::{Aggregation, Remote, identity};
use crate::limits;

/// The result of a check, with upstream's reason and message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    pub reason: &'static str,
    pub message: String,
}

impl Condition {
    /// The result for groups that this server itself serves.
    pub fn served_here() -> Condition {
        let (reason, message) = SERVED_HERE;
        Condition { reason, message: message.to_owned() }
    }

    pub fn is_good(&self) -> bool {
        self.reason == "Passed" || *self == Condition::served_here()
    }

    /// The condition `Available` of an APIService, without its time.
    pub fn to_value(&self) -> Value {
        let status = if self.is_good() { "True" } else { "False" };
        json!({"type": "Available", "status": status, "reason": (self.reason), "message": (self.message.clone())})
    }
}

impl Aggregation {
    /// Checks whether a server responds.
    pub async fn check(&self, remote: &Remote) -> Condition {
        let backend = &remote.backend;
        let address = match self.client.locate(backend) {
            Ok(address) => address,
            Err(why) => return unresolved(why, &backend.namespace, &backend.name, backend.port),
        };
        let attempts = (0..limits::AVAILABILITY_ATTEMPTS).map(|_| Box::pin(self.probe(remote, &address)));
        match select_ok(attempts).await {
            Ok(_) => Condition { reason: "Passed", message: "all checks passed".to_owned() },
            Err(message) => Condition { reason: "FailedDiscoveryCheck", message },
        }
    }

    /// Requests a path that every aggregated API server serves, once. Its certificate is not verified, since the request
    /// carries no user.
    async fn probe(&self, remote: &Remote, address: &Address) -> Result<(), String> {
        let url = format!("https://{address}{}", remote.root());
        let failed = |why: String| format!("failing or missing response from {url}: {why}");
        let mut request = Request::get(remote.root()).body(Empty::<Bytes>::new()).map_err(|error| error.to_string())?;
        identity::introduce(&User::system("system:kube-aggregator"), request.headers_mut())?;
        identity::forward(&mut request, &address.to_string());
        let response = self.client.forward_unverified(&remote.backend, address, request);
        let response = tokio::time::timeout(limits::REMOTE_CHECK, response).await;
        let late = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)";
        let response =
            response.map_or_else(|_| Err(late.to_owned()), |called| called.map_err(|error| error.to_string()));
        let response = response.map_err(|why| failed(format!("Get \"{url}\": {why}")))?;
        match response.status().as_u16() {
            200..=299 => Ok(()),
            code => Err(failed(format!("bad status from {url}: {code}"))),
        }
    }
}

fn unresolved(why: Unresolved, namespace: &str, name: &str, port: u16) -> Condition {
    let service = format!("service/{name} in {namespace:?}");
    match why {
        Unresolved::NotFound => Condition { reason: "ServiceNotFound", message: format!("{service} is not present") },
        Unresolved::NoPort => {
            Condition { reason: "ServicePortError", message: format!("{service} is not listening on port {port}") }
        }
        // EndpointSlices are not served
        Unresolved::NoAddress => {
            Condition { reason: "EndpointsNotFound", message: format!("cannot find endpointslices for {service}") }
        }
    }
}

#[cfg(test)]
mod tests {
    use schema::definition::{is_condition_true, replace_condition};

    use super::*;

    #[test]
    fn missing_services_have_the_messages_of_upstream() {
        let message = |why| unresolved(why, "n", "s", 443).message;
        assert_eq!(message(Unresolved::NotFound), "service/s in \"n\" is not present");
        assert_eq!(message(Unresolved::NoPort), "service/s in \"n\" is not listening on port 443");
        assert_eq!(message(Unresolved::NoAddress), "cannot find endpointslices for service/s in \"n\"");
    }

    #[test]
    fn transition_time_changes_with_the_status() {
        let good = Condition { reason: "Passed", message: "all checks passed".to_owned() };
        let bad = Condition { reason: "ServiceNotFound", message: String::new() };
        let mut service = Value::object();
        for (condition, now, since) in [(&good, "t0", "t0"), (&good, "t1", "t0"), (&bad, "t2", "t2")] {
            replace_condition(&mut service, condition.to_value(), now);
            let [found] = service.items_at(&["status", "conditions"]) else { panic!("{service:?}") };
            assert_eq!(
                (found.str_at(&["lastTransitionTime"]), is_condition_true(&service, "Available")),
                (since, *condition == good)
            );
        }
    }
}
