//! URLs, by `machinery::url`.

use crate::value::{Error, Key, Map, Opaque, Result, Str, Val};
use machinery::url::{Url, decode_query};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Parses an absolute URL or an absolute path.
fn parse(text: &str) -> std::result::Result<Url, String> {
    Url::parse_request(text)?;
    Url::parse(text)
}

fn get<'a>(args: &[Val<'a>], part: impl FnOnce(&Url) -> String) -> Result<Val<'a>> {
    match args {
        [Val::Opaque(opaque)] => match &**opaque {
            Opaque::Url(url) => Ok(Val::string(part(url))),
            _ => Err(Error::overload()),
        },
        _ => Err(Error::overload()),
    }
}

pub fn url<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    let [Val::String(text)] = args else { return Err(Error::overload()) };
    match parse(text) {
        Ok(url) => Ok(Val::opaque(Opaque::Url(url))),
        Err(error) => Err(Error::new(format!("URL parse error during conversion from string: {error}"))),
    }
}

pub fn is_url<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    let [Val::String(text)] = args else { return Err(Error::overload()) };
    Ok(Val::Bool(parse(text).is_ok()))
}

pub fn get_scheme<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    get(args, |url| url.scheme.clone())
}

pub fn get_host<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    get(args, |url| url.host.clone())
}

pub fn get_hostname<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    get(args, |url| url.hostname().to_owned())
}

pub fn get_port<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    get(args, |url| url.port().to_owned())
}

pub fn get_escaped_path<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    get(args, |url| url.path.clone())
}

pub fn get_query<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    let [Val::Opaque(opaque)] = args else { return Err(Error::overload()) };
    let Opaque::Url(url) = &**opaque else { return Err(Error::overload()) };
    let mut members: BTreeMap<String, Vec<Val<'a>>> = BTreeMap::new();
    for pair in url.query.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';')) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        if let (Some(key), Some(value)) = (decode_query(key), decode_query(value)) {
            members.entry(key).or_default().push(Val::string(value));
        }
    }
    let entries = members.into_iter().map(|(k, v)| (Key::String(Str::Shared(k.into())), Val::list(v)));
    Ok(Val::Map(Map::Owned(Rc::new(entries.collect()))))
}
