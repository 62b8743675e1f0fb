//! Client certificates: their users and their validity.

use base::clock;
use base::request::User;
use machinery::Text;

use super::names::Subject;

/// The certificates that the client of a connection has presented.
pub enum ClientCertificate {
    /// No certificate, or one without a user.
    None,
    /// A certificate that has expired, or that no trusted certificate authority has signed for clients.
    Refused,
    /// A valid certificate of a user or a proxy; `not_after` is in seconds since the Unix epoch.
    Valid { user: Option<Box<User>>, proxy: bool, not_after: i64 },
}

/// The purpose for which the chain of a certificate was verified.
#[derive(Clone, Copy, Debug, Default)]
pub struct Verified {
    /// An authority of clients has signed it: CN is the user, O are the groups.
    pub client: bool,
    /// The authority of proxies has signed it.
    pub proxy: bool,
}

impl ClientCertificate {
    /// A certificate whose chain has been verified. One without a CN authenticates no user, and the last of several CNs
    /// counts. A proxy must have one of the CNs in `proxies`, or any if that is empty.
    pub fn verified(der: &[u8], verified: Verified, proxies: &[String]) -> ClientCertificate {
        let Ok((_, certificate)) = x509_parser::parse_x509_certificate(der) else { return ClientCertificate::Refused };
        let not_after = certificate.validity().not_after.timestamp();
        let Ok(subject) = Subject::read(certificate.subject()) else { return ClientCertificate::Refused };
        let proxy = verified.proxy && (proxies.is_empty() || proxies.contains(&subject.common_name));
        let user = if verified.client { user(der, subject) } else { Ok(None) };
        let user = match user {
            Ok(user) => user.map(Box::new),
            Err(UnclearUid) if proxy => None,
            Err(UnclearUid) => return ClientCertificate::Refused,
        };
        if user.is_some() || proxy {
            return ClientCertificate::Valid { user, proxy, not_after };
        }
        if verified.client { ClientCertificate::None } else { ClientCertificate::Refused }
    }

    /// The user, while the certificate is valid: connections may outlive it.
    pub fn user(&self) -> Option<&User> {
        match self {
            ClientCertificate::Valid { user, not_after, .. } if clock::machine_seconds() <= *not_after => {
                user.as_deref()
            }
            _ => None,
        }
    }

    /// Whether the client is a front proxy, which names the user in headers.
    pub fn is_proxy(&self) -> bool {
        matches!(self, ClientCertificate::Valid { proxy: true, not_after, .. } if clock::machine_seconds() <= *not_after)
    }

    /// The remaining validity of the certificate, in seconds.
    pub fn seconds_left(&self) -> Option<i64> {
        match self {
            ClientCertificate::Valid { not_after, .. } => Some(not_after - clock::machine_seconds()),
            _ => None,
        }
    }

    /// Whether a certificate was presented that is not accepted.
    pub fn is_refused(&self) -> bool {
        !matches!(self, ClientCertificate::None) && self.user().is_none() && !self.is_proxy()
    }
}

/// A subject with several uids, or an empty one.
struct UnclearUid;

/// The user of a certificate; `None` if it has no common name.
fn user(der: &[u8], subject: Subject) -> Result<Option<User>, UnclearUid> {
    let Subject { common_name, organizations, uids } = subject;
    if common_name.is_empty() {
        return Ok(None);
    }
    let uid = match uids.as_slice() {
        [] => Text::default(),
        [uid] if !uid.is_empty() => Text::from(uid.as_str()),
        _ => return Err(UnclearUid),
    };
    let credential = Text::from(format!("X509SHA256={}", base::digest::sha256_hex(der)));
    let extra = vec![("authentication.kubernetes.io/credential-id".into(), vec![credential])];
    let groups = organizations.into_iter().map(Text::from).collect();
    Ok(Some(User { name: common_name.into(), uid, groups, extra }.authenticated()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_have_at_most_one_uid() {
        let cases = [
            ("", vec!["u"], Some(None)),
            ("a", vec![], Some(Some(""))),
            ("a", vec!["u"], Some(Some("u"))),
            ("a", vec!["u", "v"], None),
            ("a", vec![""], None),
        ];
        for (name, uids, want) in cases {
            let uids: Vec<String> = uids.into_iter().map(str::to_owned).collect();
            let subject = Subject { common_name: name.to_owned(), organizations: vec!["g".to_owned()], uids };
            let found = user(&[], subject).ok().map(|user| user.map(|user| user.uid));
            assert_eq!(found, want.map(|uid| uid.map(Text::from)));
        }
    }
}
