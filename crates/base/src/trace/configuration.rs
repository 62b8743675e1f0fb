//! TracingConfiguration (`apiserver.config.k8s.io`, KEP-647): the collector of spans, and the sampling rate.

use machinery::{FieldPath, Value};

use crate::configuration::{API_VERSIONS, ConfigurationErrors, ConfigurationKind, UnknownFields};

const PER_MILLION_MAX: i64 = 1_000_000;
/// Default address of the collector.
const ENDPOINT: &str = "localhost:4317";

const KIND: ConfigurationKind = ConfigurationKind {
    api_versions: API_VERSIONS,
    go: "apiserver_config.v1.TracingConfiguration",
    unknown_fields: UnknownFields::Refused,
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configuration {
    /// `host:port` of the collector: OTLP over gRPC, without TLS.
    pub endpoint: String,
    /// How many of a million requests are sampled, among those that do not continue a trusted trace.
    pub per_million: u32,
}

impl Configuration {
    /// Reads a decoded TracingConfiguration. Fails with a one-line message.
    pub fn parse(value: &Value) -> Result<Configuration, String> {
        let value = &KIND.read(value)?;
        let mut errors = ConfigurationErrors::default();
        let rate = value.get("samplingRatePerMillion").cloned().unwrap_or(Value::Int(0));
        let number = rate.as_int().unwrap_or(-1);
        let why = match number {
            ..0 => Some("sampling rate must be positive"),
            0..=PER_MILLION_MAX => None,
            _ => Some("sampling rate per million must be less than or equal to one million"),
        };
        if let Some(why) = why {
            errors.invalid(&FieldPath::new("samplingRatePerMillion"), rate, why);
        }
        let given = value.str_at(&["endpoint"]);
        let endpoint = match given.split_once("//") {
            None => given,
            Some(("dns:", rest)) => rest.trim_start_matches('/'),
            Some((scheme, _)) => {
                let scheme = scheme.trim_end_matches(':');
                let why = format!(
                    "unsupported scheme: {scheme}.  Options are none, dns, unix, or unix-abstract.  See https://github.com/grpc/grpc/blob/master/doc/naming.md"
                );
                errors.invalid(&FieldPath::new("endpoint"), given, why);
                given
            }
        };
        errors.check()?;
        let endpoint = if endpoint.is_empty() { ENDPOINT } else { endpoint }.to_owned();
        Ok(Configuration { endpoint, per_million: u32::try_from(number).unwrap_or_default() })
    }
}

#[cfg(test)]
mod tests {
    use machinery::json;

    use super::*;

    fn read(fields: &[(&str, Value)]) -> Result<Configuration, String> {
        let mut value = json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "TracingConfiguration"});
        fields.iter().for_each(|(key, field)| value.set_at(&[key], field.clone()));
        Configuration::parse(&value)
    }

    #[test]
    fn files_are_read() {
        let of = |endpoint: &str, per_million| Configuration { endpoint: endpoint.to_owned(), per_million };
        assert_eq!(read(&[]), Ok(of("localhost:4317", 0)));
        let both = [("endpoint", json!("10.0.0.1:4317")), ("samplingRatePerMillion", json!(100))];
        assert_eq!(read(&both), Ok(of("10.0.0.1:4317", 100)));
        assert_eq!(read(&[("endpoint", json!("dns:///host:1"))]), Ok(of("host:1", 0)));
    }

    #[test]
    fn errors_name_the_invalid_value() {
        let cases = [
            (
                "samplingRatePerMillion",
                json!(-1),
                "samplingRatePerMillion: Invalid value: -1: sampling rate must be positive",
            ),
            (
                "samplingRatePerMillion",
                json!(1_000_001),
                "samplingRatePerMillion: Invalid value: 1000001: sampling rate per million must be less than or equal to one million",
            ),
            ("endpoint", json!("https://x"), "endpoint: Invalid value: \"https://x\": unsupported scheme: https.  "),
            ("colour", json!("red"), "strict decoding error: unknown field \"colour\""),
            ("kind", json!("Other"), "no kind \"Other\" is registered for version \"apiserver.config.k8s.io/v1\""),
        ];
        for (key, value, wanted) in cases {
            let error = read(&[(key, value)]).unwrap_err();
            assert!(error.starts_with(wanted), "{error}");
        }
    }
}
