//! The texts in subjects of certificates and certificate requests, read as Go reads them. What Go reads as a group must
//! be a group here, since a client may present a certificate that this server issues or accepts to a kube-apiserver
//! with the same certificate authority.

use x509_parser::asn1_rs::{Any, Tag};
use x509_parser::x509::{AttributeTypeAndValue, X509Name};

/// The attribute of a subject that holds a user's uid.
const UID: &str = "1.3.6.1.4.1.57683.2";

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// The last common name, as in Go's `pkix.Name`; empty if there is none.
    pub common_name: String,
    pub organizations: Vec<String>,
    pub uids: Vec<String>,
}

impl Subject {
    /// Reads a subject. No attribute is skipped: a text that cannot be read is an error, in Go's words.
    pub fn read(name: &X509Name<'_>) -> Result<Subject, &'static str> {
        name.iter_attributes().try_for_each(|attribute| text(attribute.attr_value()).map(drop))?;
        let texts = |attributes: &mut dyn Iterator<Item = &AttributeTypeAndValue<'_>>| {
            attributes.map(|attribute| text(attribute.attr_value())).collect::<Result<Vec<String>, _>>()
        };
        Ok(Subject {
            common_name: texts(&mut name.iter_common_name())?.pop().unwrap_or_default(),
            organizations: texts(&mut name.iter_organization())?,
            uids: texts(&mut name.iter_attributes().filter(|attribute| attribute.attr_type().to_id_string() == UID))?,
        })
    }
}

/// A text of one of the types that Go's `crypto/x509` reads.
fn text(value: &Any<'_>) -> Result<String, &'static str> {
    let bytes = value.data;
    let ascii = |is_allowed: fn(u8) -> bool, why| {
        bytes.iter().all(|byte| is_allowed(*byte)).then(|| bytes.iter().copied().map(char::from).collect()).ok_or(why)
    };
    match value.tag() {
        Tag::Utf8String => std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| "invalid UTF-8 string"),
        Tag::PrintableString => ascii(is_printable, "invalid PrintableString"),
        Tag::Ia5String => ascii(|byte| byte.is_ascii(), "invalid IA5String"),
        Tag::NumericString => ascii(|byte| byte.is_ascii_digit() || byte == b' ', "invalid NumericString"),
        // ISO 8859-1, whose characters have the numbers of Unicode
        Tag::T61String => Ok(bytes.iter().copied().map(char::from).collect()),
        Tag::BmpString => bmp(bytes).ok_or("invalid BMPString"),
        _ => Err("unsupported string type"),
    }
}

/// Whether Go accepts a byte in a PrintableString; real certificates contain `*` and `&`.
fn is_printable(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b" '()+,-./:=?*&".contains(&byte)
}

/// A text of 16-bit characters, without a final zero. Like Go, rejects surrogates and noncharacters.
fn bmp(bytes: &[u8]) -> Option<String> {
    if !bytes.len().is_multiple_of(2) {
        return None;
    }
    let bytes = bytes.strip_suffix(&[0, 0]).unwrap_or(bytes);
    let units = bytes.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    units.map(|unit| char::from_u32(unit).filter(|_| !matches!(unit, 0xfdd0..=0xfdef | 0xfffe | 0xffff))).collect()
}

#[cfg(test)]
mod tests {
    use x509_parser::prelude::FromDer as _;

    use super::*;

    /// The subject of attributes of `2.5.4.x`, each with a tag of a type of text.
    fn subject(attributes: &[(u8, u8, &[u8])]) -> Result<Subject, &'static str> {
        let wrap = |tag: u8, content: &[u8]| [&[tag, u8::try_from(content.len()).unwrap()][..], content].concat();
        let attribute = |(oid, tag, text): &(u8, u8, &[u8])| {
            let pair = [wrap(0x06, &[0x55, 0x04, *oid]), wrap(*tag, text)].concat();
            wrap(0x31, &wrap(0x30, &pair))
        };
        let der = wrap(0x30, &attributes.iter().flat_map(attribute).collect::<Vec<u8>>());
        Subject::read(&X509Name::from_der(&der).unwrap().1)
    }

    const BMP: &[u8] = b"\0s\0y\0s\0t\0e\0m\0:\0m\0a\0s\0t\0e\0r\0s";

    #[test]
    fn groups_are_read_in_every_type_of_text() {
        let cases: [(u8, &[u8], Result<&str, &str>); 18] = [
            (12, b"system:masters", Ok("system:masters")),
            (19, b"system:masters", Ok("system:masters")),
            (20, b"system:masters", Ok("system:masters")),
            (22, b"system:masters", Ok("system:masters")),
            (30, BMP, Ok("system:masters")),
            (30, &[BMP, b"\0\0"].concat(), Ok("system:masters")),
            (12, "é".as_bytes(), Ok("é")),
            (20, b"\xe9", Ok("é")),
            (30, b"\0\xe9", Ok("é")),
            (18, b"12 3", Ok("12 3")),
            (12, b"\xe9", Err("invalid UTF-8 string")),
            (19, b"a@b", Err("invalid PrintableString")),
            (22, b"\xe9", Err("invalid IA5String")),
            (18, b"a", Err("invalid NumericString")),
            (30, b"\0a\0", Err("invalid BMPString")),
            (30, b"\xd8\x00", Err("invalid BMPString")),
            (30, b"\xff\xfe", Err("invalid BMPString")),
            (28, b"\0\0\0a", Err("unsupported string type")),
        ];
        for (tag, text, want) in cases {
            let found = subject(&[(3, 12, b"jane"), (10, tag, text)]).map(|subject| subject.organizations);
            assert_eq!(found, want.map(|group| vec![group.to_owned()]), "{tag} {text:?}");
        }
    }

    #[test]
    fn last_common_name_is_used() {
        for (names, want) in [(&[][..], ""), (&["a"], "a"), (&["a", "b"], "b"), (&["a", "b", ""], "")] {
            let attributes: Vec<(u8, u8, &[u8])> = names.iter().map(|name| (3, 12, name.as_bytes())).collect();
            assert_eq!(subject(&attributes).unwrap().common_name, want);
        }
    }
}
