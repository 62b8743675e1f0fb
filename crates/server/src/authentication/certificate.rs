//! Client certificates: whom they name, and until when.

use machinery::Text;

use crate::clock;
use crate::request::User;

/// What the client of a connection has shown.
pub enum ClientCertificate {
    /// No certificate, or one that names nobody.
    None,
    /// A certificate that has expired, or that no authority of ours has signed for clients.
    Refused,
    /// A certificate of this user, until so many seconds after the Unix epoch.
    Of { user: Box<User>, not_after: i64 },
}

impl ClientCertificate {
    /// A certificate whose chain has been verified: CN is the user, O are the groups. No CN is nobody.
    pub fn verified(der: &[u8]) -> ClientCertificate {
        let Ok((_, certificate)) = x509_parser::parse_x509_certificate(der) else { return ClientCertificate::Refused };
        let not_after = certificate.validity().not_after.timestamp();
        match user(der, certificate.subject()) {
            Some(user) => ClientCertificate::Of { user: Box::new(user), not_after },
            None => ClientCertificate::None,
        }
    }

    /// The user, while the certificate is valid: connections may outlive it.
    pub fn user(&self) -> Option<&User> {
        match self {
            ClientCertificate::Of { user, not_after } if clock::now_seconds() <= *not_after => Some(user),
            _ => None,
        }
    }

    /// Whether a certificate was shown that says nothing, which is worse than none.
    pub fn is_refused(&self) -> bool {
        !matches!(self, ClientCertificate::None) && self.user().is_none()
    }
}

fn user(der: &[u8], subject: &x509_parser::x509::X509Name<'_>) -> Option<User> {
    let text = |attribute: &x509_parser::x509::AttributeTypeAndValue<'_>| attribute.as_str().ok().map(Text::from);
    let name = subject.iter_common_name().next().and_then(text).filter(|name| !name.is_empty())?;
    let groups = subject.iter_organization().filter_map(text).collect();
    let fingerprint: String = {
        use sha2::Digest as _;
        sha2::Sha256::digest(der).iter().map(|b| format!("{b:02x}")).collect()
    };
    let credential = Text::from(format!("X509SHA256={fingerprint}"));
    let extra = vec![("authentication.kubernetes.io/credential-id".into(), vec![credential])];
    Some(User { name, uid: Text::default(), groups, extra }.authenticated())
}
