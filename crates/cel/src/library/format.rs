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

/// A format, as the function of its name returns it.
pub fn constant<'a>(name: &str) -> Result<Val<'a>> {
    Ok(Val::opaque(Opaque::Format(by_name(name).ok_or_else(Error::overload)?)))
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
