//! Client certificates: their users and their validity.

use base::clock;
use base::request::User;
use machinery::Text;

/// The attribute of a subject that holds a user's uid.
const UID: &str = "1.3.6.1.4.1.57683.2";

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
    /// counts; a proxy has one of `proxies`, or any if there are none.
    pub fn verified(der: &[u8], verified: Verified, proxies: &[String]) -> ClientCertificate {
        let Ok((_, certificate)) = x509_parser::parse_x509_certificate(der) else { return ClientCertificate::Refused };
        let not_after = certificate.validity().not_after.timestamp();
        let user = verified.client.then(|| user(der, certificate.subject())).flatten().map(Box::new);
        let name = common_name(certificate.subject());
        let proxy = verified.proxy && (proxies.is_empty() || proxies.iter().any(|known| known == name));
        if user.is_some() || proxy {
            return ClientCertificate::Valid { user, proxy, not_after };
        }
        if verified.client { ClientCertificate::None } else { ClientCertificate::Refused }
    }

    /// The user, while the certificate is valid: connections may outlive it.
    pub fn user(&self) -> Option<&User> {
        match self {
            ClientCertificate::Valid { user, not_after, .. } if clock::now_seconds() <= *not_after => user.as_deref(),
            _ => None,
        }
    }

    /// Whether the client is a front proxy, which names the user in headers.
    pub fn is_proxy(&self) -> bool {
        matches!(self, ClientCertificate::Valid { proxy: true, not_after, .. } if clock::now_seconds() <= *not_after)
    }

    /// Remaining validity of a certificate that names a user.
    pub fn seconds_left(&self) -> Option<i64> {
        match self {
            ClientCertificate::Valid { not_after, .. } => Some(not_after - clock::now_seconds()),
            _ => None,
        }
    }

    /// Whether a certificate was presented that is not accepted.
    pub fn is_refused(&self) -> bool {
        !matches!(self, ClientCertificate::None) && self.user().is_none() && !self.is_proxy()
    }
}

/// The common name of a subject: the last one, as Go's `pkix.Name` has it.
fn common_name<'a>(subject: &'a x509_parser::x509::X509Name<'_>) -> &'a str {
    subject.iter_common_name().filter_map(|name| name.as_str().ok()).last().unwrap_or_default()
}

fn user(der: &[u8], subject: &x509_parser::x509::X509Name<'_>) -> Option<User> {
    let text = |attribute: &x509_parser::x509::AttributeTypeAndValue<'_>| attribute.as_str().ok().map(Text::from);
    let name = Some(common_name(subject)).filter(|name| !name.is_empty()).map(Text::from)?;
    let groups = subject.iter_organization().filter_map(text).collect();
    let credential = Text::from(format!("X509SHA256={}", base::digest::sha256_hex(der)));
    let extra = vec![("authentication.kubernetes.io/credential-id".into(), vec![credential])];
    let uid = subject.iter_attributes().find(|attribute| attribute.attr_type().to_id_string() == UID);
    Some(User { name, uid: uid.and_then(text).unwrap_or_default(), groups, extra }.authenticated())
}

#[cfg(test)]
mod tests {
    use x509_parser::prelude::{FromDer as _, X509Name};

    use super::*;

    #[test]
    fn last_common_name_is_used() {
        let attribute = |name: u8| [0x31, 0x0a, 0x30, 0x08, 0x06, 0x03, 0x55, 0x04, 0x03, 0x0c, 0x01, name];
        for (names, want) in [(&b""[..], ""), (b"a", "a"), (b"ab", "b"), (b"abc", "c")] {
            let attributes: Vec<u8> = names.iter().flat_map(|name| attribute(*name)).collect();
            let der = [&[0x30, attributes.len() as u8][..], &attributes].concat();
            let (_, subject) = X509Name::from_der(&der).unwrap();
            assert_eq!(common_name(&subject), want);
            let user = user(&[], &subject).map(|user| user.name);
            assert_eq!(user.as_deref(), Some(want).filter(|name| !name.is_empty()));
        }
    }
}
