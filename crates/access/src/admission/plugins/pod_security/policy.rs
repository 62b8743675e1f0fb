//! Levels, versions and modes of the Pod Security Standards, and the labels that name them.

use std::fmt;

use machinery::{FieldError, FieldPath, Value};

/// Prefix of labels and of audit annotations.
pub const PREFIX: &str = "pod-security.kubernetes.io/";

machinery::text_enum! {
    /// The level of a standard, from the least to the most restrictive.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum SecurityLevel {
        Privileged = "privileged",
        Baseline = "baseline",
        Restricted = "restricted",
    }
}

/// Parses a level; the error lists all.
pub fn parse_level(text: &str) -> Result<SecurityLevel, &'static str> {
    SecurityLevel::parse(text).ok_or("must be one of privileged, baseline, restricted")
}

/// A minor version of Kubernetes; `None` is the latest.
pub type Version = Option<u32>;

pub fn parse_version(text: &str) -> Result<Version, &'static str> {
    const WRONG: &str = "must be \"latest\" or \"v1.x\"";
    if text == "latest" {
        return Ok(None);
    }
    let digits = text.strip_prefix("v1.").ok_or(WRONG)?;
    let is_number = digits.bytes().all(|digit| digit.is_ascii_digit()) && (digits == "0" || !digits.starts_with('0'));
    if is_number { digits.parse().map(Some).map_err(|_| WRONG) } else { Err(WRONG) }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelVersion {
    pub level: SecurityLevel,
    pub version: Version,
}

impl LevelVersion {
    pub const PRIVILEGED: LevelVersion = LevelVersion { level: SecurityLevel::Privileged, version: None };

    fn is_equivalent(self, other: LevelVersion) -> bool {
        self == other || (self.level == SecurityLevel::Privileged && other.level == SecurityLevel::Privileged)
    }
}

impl fmt::Display for LevelVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.version {
            None => write!(f, "{}:latest", self.level.as_str()),
            Some(minor) => write!(f, "{}:v1.{minor}", self.level.as_str()),
        }
    }
}

/// The levels that are enforced, audited and warned about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecurityPolicy {
    pub enforce: LevelVersion,
    pub audit: LevelVersion,
    pub warn: LevelVersion,
}

impl Default for SecurityPolicy {
    fn default() -> SecurityPolicy {
        let least = LevelVersion::PRIVILEGED;
        SecurityPolicy { enforce: least, audit: least, warn: least }
    }
}

impl SecurityPolicy {
    pub fn is_privileged(&self) -> bool {
        [self.enforce, self.audit, self.warn].iter().all(|mode| mode.level == SecurityLevel::Privileged)
    }

    pub fn is_equivalent(&self, other: &SecurityPolicy) -> bool {
        self.enforce.is_equivalent(other.enforce)
            && self.audit.is_equivalent(other.audit)
            && self.warn.is_equivalent(other.warn)
    }

    /// This policy, overridden by labels. An invalid level means `restricted` for enforcement and `privileged` for auditing and
    /// warning.
    pub fn with(&self, labels: &Value) -> (SecurityPolicy, Vec<FieldError>) {
        let (mut policy, mut errors) = (*self, vec![]);
        let text = |label: &str| labels.get(&format!("{PREFIX}{label}")).and_then(Value::as_str);
        let modes = [
            ("enforce", SecurityLevel::Restricted),
            ("audit", SecurityLevel::Privileged),
            ("warn", SecurityLevel::Privileged),
        ];
        for (mode, default) in modes {
            let part = match mode {
                "enforce" => &mut policy.enforce,
                "audit" => &mut policy.audit,
                _ => &mut policy.warn,
            };
            if let Some(given) = text(mode) {
                part.level = parse_level(given).unwrap_or_else(|why| {
                    errors.push(label_error(mode, given, why));
                    default
                });
            }
            let label = format!("{mode}-version");
            if let Some(given) = text(&label) {
                part.version = parse_version(given).unwrap_or_else(|why| {
                    errors.push(label_error(&label, given, why));
                    None
                });
            }
        }
        // objects with Pod templates, which are not rejected, get warnings at the enforced level
        let enforces = text("enforce").is_some_and(|given| parse_level(given).is_ok());
        if enforces && text("warn").is_none() && policy.enforce.level > policy.warn.level {
            policy.warn.level = policy.enforce.level;
            if text("warn-version").is_none() {
                policy.warn.version = policy.enforce.version;
            }
        }
        (policy, errors)
    }
}

/// The text of an error, after the path of its field.
pub fn error_text(error: &FieldError) -> String {
    format!("{}: {}", error.field, error.message())
}

fn label_error(label: &str, given: &str, why: &str) -> FieldError {
    let path = FieldPath::new("metadata").child("labels").key(&format!("{PREFIX}{label}"));
    FieldError::invalid(&path, &Value::from(given), why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_make_policies() {
        type Labels = &'static [(&'static str, &'static str)];
        let cases: [(Labels, &str, &[&str]); 5] = [
            (&[], "privileged:latest privileged:latest privileged:latest", &[]),
            (&[("enforce", "baseline")], "baseline:latest privileged:latest baseline:latest", &[]),
            (
                &[("enforce", "baseline"), ("enforce-version", "v1.20"), ("warn", "privileged")],
                "baseline:v1.20 privileged:latest privileged:latest",
                &[],
            ),
            (
                &[("enforce", "most"), ("audit", "least")],
                "restricted:latest privileged:latest privileged:latest",
                &[
                    "metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: \"most\": must be one of privileged, baseline, restricted",
                    "metadata.labels[pod-security.kubernetes.io/audit]: Invalid value: \"least\": must be one of privileged, baseline, restricted",
                ],
            ),
            (
                &[("warn", "restricted"), ("warn-version", "v1.07")],
                "privileged:latest privileged:latest restricted:latest",
                &[
                    "metadata.labels[pod-security.kubernetes.io/warn-version]: Invalid value: \"v1.07\": must be \"latest\" or \"v1.x\"",
                ],
            ),
        ];
        for (labels, want, want_errors) in cases {
            let mut map = Value::object();
            labels.iter().for_each(|(label, text)| map.set_at(&[&format!("{PREFIX}{label}")], Value::from(*text)));
            let (policy, errors) = SecurityPolicy::default().with(&map);
            assert_eq!(format!("{} {} {}", policy.enforce, policy.audit, policy.warn), want);
            assert_eq!(errors.iter().map(error_text).collect::<Vec<_>>(), want_errors);
        }
    }
}
