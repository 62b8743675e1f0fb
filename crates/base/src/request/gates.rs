//! Feature gates, by kube-apiserver's names. All are off by default.

/// The enabled features.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FeatureGates {
    /// CBOR in requests and responses, and in etcd for custom resources (KEP-4222).
    pub cbor: bool,
    /// Modes of impersonation (KEP-5284); on by default since 1.36.
    pub constrained_impersonation: bool,
    /// MutatingAdmissionPolicies (KEP-3962); always on since 1.36.
    pub mutating_policies: bool,
}

impl FeatureGates {
    /// Reads `Name=true` and `Name=false`. The error is kube-apiserver's.
    pub fn parse(given: &[String]) -> Result<FeatureGates, String> {
        let mut gates = FeatureGates::default();
        for text in given.iter().map(|text| text.trim()).filter(|text| !text.is_empty()) {
            let (name, value) = text.split_once('=').ok_or_else(|| format!("missing bool value for {text}"))?;
            let (name, value) = (name.trim(), value.trim());
            let on = match value {
                "1" | "t" | "T" | "true" | "TRUE" | "True" => true,
                "0" | "f" | "F" | "false" | "FALSE" | "False" => false,
                _ => {
                    let quoted = machinery::value::quote(value);
                    let why = format!("strconv.ParseBool: parsing {quoted}: invalid syntax");
                    return Err(format!("invalid value of {name}={value}, err: {why}"));
                }
            };
            match name {
                "CBORServingAndStorage" => gates.cbor = on,
                "ConstrainedImpersonation" => gates.constrained_impersonation = on,
                "MutatingAdmissionPolicy" => gates.mutating_policies = on,
                // since 1.37 only the API has to be enabled
                "StorageVersionMigrator" if on => {}
                "StorageVersionMigrator" => {
                    return Err(format!("cannot set feature gate {name} to false, feature is locked to true"));
                }
                _ => return Err(format!("unrecognized feature gate: {name}")),
            }
        }
        Ok(gates)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_are_named_as_upstream() {
        let parse = |text: &str| FeatureGates::parse(&[text.to_owned()]);
        assert_eq!(parse("CBORServingAndStorage=true"), Ok(FeatureGates { cbor: true, ..FeatureGates::default() }));
        assert_eq!(parse("CBORServingAndStorage=F"), Ok(FeatureGates::default()));
        assert!(parse("ConstrainedImpersonation=1").unwrap().constrained_impersonation);
        assert!(parse("MutatingAdmissionPolicy=true").unwrap().mutating_policies);
        assert_eq!(parse("StorageVersionMigrator=true"), Ok(FeatureGates::default()));
        assert!(parse("StorageVersionMigrator=false").unwrap_err().ends_with("feature is locked to true"));
        assert_eq!(parse("Boats=true").unwrap_err(), "unrecognized feature gate: Boats");
        assert_eq!(parse("Boats").unwrap_err(), "missing bool value for Boats");
        let why = "invalid value of Boats=2, err: strconv.ParseBool: parsing \"2\": invalid syntax";
        assert_eq!(parse("Boats=2").unwrap_err(), why);
    }
}
