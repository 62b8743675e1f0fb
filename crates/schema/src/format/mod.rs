//! The formats that are enforced for strings; other names are ignored.
//!
//! Quirks of upstream's implementation are reproduced, since they decide which values are accepted.

mod codes;
mod mail;
mod net;
mod time;

use machinery::names::{dns1123_label, dns1123_subdomain};
use machinery::url::Url;

pub use time::parse_duration;

/// A known format.
#[derive(Clone, Copy, Debug)]
pub struct Format(Check);

type Check = fn(&str) -> bool;

impl Format {
    /// The format with this name; dashes are ignored.
    pub fn named(name: &str) -> Option<Format> {
        let known = |f: &&(&'static str, Check)| same(f.0, name);
        FORMATS.iter().find(known).map(|(_, accepts)| Format(*accepts))
    }

    pub fn accepts(self, text: &str) -> bool {
        self.0(text)
    }
}

/// Whether a text is standard base64 and not empty.
pub(crate) fn is_base64(text: &str) -> bool {
    codes::base64(text)
}

fn same(normal: &str, name: &str) -> bool {
    normal.bytes().eq(name.bytes().filter(|b| *b != b'-'))
}

const FORMATS: &[(&str, Check)] = &[
    ("bsonobjectid", codes::object_id),
    ("uri", |text| Url::parse_request(text).is_ok()),
    ("email", mail::is_address),
    ("hostname", net::hostname),
    ("ipv4", net::ipv4),
    ("ipv6", net::ipv6),
    ("cidr", net::cidr),
    ("mac", net::mac),
    ("uuid", |s| codes::uuid(s, None)),
    ("uuid3", |s| codes::uuid(s, Some(b'3'))),
    ("uuid4", |s| codes::uuid(s, Some(b'4'))),
    ("uuid5", |s| codes::uuid(s, Some(b'5'))),
    ("isbn", |s| codes::isbn10(s) || codes::isbn13(s)),
    ("isbn10", codes::isbn10),
    ("isbn13", codes::isbn13),
    ("creditcard", codes::credit_card),
    ("ssn", codes::ssn),
    ("hexcolor", codes::hex_color),
    ("rgbcolor", codes::rgb_color),
    ("byte", codes::base64),
    ("password", |_| true),
    ("date", time::date),
    ("duration", |s| parse_duration(s).is_some()),
    ("datetime", cel::is_date_time),
    ("k8sshortname", |s| dns1123_label(s).is_empty()),
    ("k8slongname", |s| dns1123_subdomain(s).is_empty()),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, good: &[&str], bad: &[&str]) {
        let format = Format::named(name).unwrap();
        for text in good {
            assert!(format.accepts(text), "{name} {text}");
        }
        for text in bad {
            assert!(!format.accepts(text), "{name} {text}");
        }
    }

    #[test]
    fn formats_accept_what_upstream_accepts() {
        check(
            "date-time",
            &["2024-01-01t00:00:00z", "2024-01-01T23:59:59.5+02:00"],
            &["2024-01-01", "2024-01-01T24:00:00Z"],
        );
        check("date", &["2024-02-29"], &["2023-02-29", "2024-2-1", ""]);
        check("duration", &["1h30m", "0", "-1.5s", "2 days", "x 3 wk y"], &["", "5", "1 x"]);
        check("email", &["a@b", "Joe <j@x.y>", "\"a b\"@c", "a@[1.2.3.4]"], &["a", "@b", "a@", "a@b, c@d", "a b@c"]);
        check("email", &["team: a@b;"], &["team: a@b, c@d;", "team: inner: a@b;;", &"a:".repeat(1_000_000)]);
        check("ipv4", &["1.2.3.4", "01.02.03.04", "::ffff:1.2.3.4"], &["1.2.3", "::1", "1.2.3.256"]);
        check(
            "ipv6",
            &["::1", "::ffff:1.2.3.4", "1:2:3:4:5:6:7:8"],
            &["1.2.3.4", ":::1", "1:2:3:4:5:6:7:8:9", "::ffff:01.2.3.4"],
        );
        check("cidr", &["10.0.0.0/8", "10.0.0.0/08", "::/0", "010.0.0.1/32"], &["10.0.0.0", "10.0.0.0/33", "::/129"]);
        check(
            "mac",
            &["01:23:45:67:89:ab", "0123.4567.89ab", "01-23-45-67-89-ab"],
            &["01:23:45:67:89", "01:23-45:67:89:ab"],
        );
        check(
            "uri",
            &["/x", "http://a/b", "urn:x:y", "http://[::1]:80/"],
            &["", "foo", "http://a b/", "http://[::1", "%zz"],
        );
        check("uuid", &["123e4567e89b12d3a456426614174000", "123E4567-e89b-12d3-a456-426614174000"], &["123e4567"]);
        check("uuid4", &["123e4567-e89b-42d3-a456-426614174000"], &["123e4567-e89b-42d3-c456-426614174000"]);
        check("isbn", &["0-321-75104-3", "978-0321751041"], &["0321751044"]);
        check("creditcard", &["4111 1111 1111 1111"], &["4111111111111112"]);
        check("ssn", &["111-11-1111", "111 11 1111"], &["111111111"]);
        check("rgbcolor", &["rgb( 0 , 1, 255)"], &["rgb(0,1,256)", "rgb(0,1)"]);
        check("byte", &["YQ==", "YWJj"], &["", "YQ", "YQ-=", "Y", "YQ==\n"]);
        check("hostname", &["a", "example.com", "a-b.example.org"], &["-a", "a..b", "a.1"]);
        check("k8s-short-name", &["a-b"], &["A", "a.b"]);
    }
}
