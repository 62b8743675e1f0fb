//! Named formats: the functions.

use crate::value::format::{FORMATS, Format};
use crate::value::{Error, Opaque, Result, Val};

fn by_name(name: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.name == name)
}

pub fn named<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    let [Val::String(name)] = args else { return Err(Error::overload()) };
    Ok(match by_name(name) {
        Some(format) => Val::some(Val::opaque(Opaque::Format(format))),
        None => Val::Optional(None),
    })
}

macro_rules! constants {
    ($($function:ident $name:literal),* $(,)?) => {
        /// The function that gives a format.
        pub(crate) fn constant(name: &str) -> Option<crate::library::Function> {
            $(fn $function<'a>(_: &[Val<'a>]) -> Result<Val<'a>> {
                let format = by_name($name).ok_or_else(Error::overload)?;
                Ok(Val::opaque(Opaque::Format(format)))
            })*
            Some(match name {
                $($name => $function,)*
                _ => return None,
            })
        }
    };
}

constants! {
    make_dns1123_label "dns1123Label",
    make_dns1123_subdomain "dns1123Subdomain",
    make_dns1035_label "dns1035Label",
    make_qualified_name "qualifiedName",
    make_dns1123_label_prefix "dns1123LabelPrefix",
    make_dns1123_subdomain_prefix "dns1123SubdomainPrefix",
    make_dns1035_label_prefix "dns1035LabelPrefix",
    make_label_value "labelValue",
    make_uri "uri",
    make_uuid "uuid",
    make_byte "byte",
    make_date "date",
    make_datetime "datetime",
}

pub fn validate<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    let [Val::Opaque(opaque), Val::String(text)] = args else { return Err(Error::overload()) };
    let Opaque::Format(format) = &**opaque else { return Err(Error::overload()) };
    let errors = (format.validate)(text);
    if errors.is_empty() {
        return Ok(Val::Optional(None));
    }
    Ok(Val::some(Val::list(errors.into_iter().map(Val::string).collect())))
}
