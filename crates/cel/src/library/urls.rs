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

fn parsed(text: &str) -> Result<Url> {
    parse(text).map_err(|error| Error::new(format!("URL parse error during conversion from string: {error}")))
}

fn get<'v>(args: &'v [Val<'_>]) -> Result<&'v Url> {
    let [Val::Opaque(opaque)] = args else { return Err(Error::overload()) };
    if let Opaque::Url(url) = &**opaque { Ok(url) } else { Err(Error::overload()) }
}

overloads! {
    url: [Val::String(text)] => Ok(Val::opaque(Opaque::Url(parsed(text)?)));
    is_url: [Val::String(text)] => Ok(Val::Bool(parse(text).is_ok()));
    get_scheme: args => Ok(Val::string(&get(args)?.scheme));
    get_host: args => Ok(Val::string(&get(args)?.host));
    get_hostname: args => Ok(Val::string(get(args)?.hostname()));
    get_port: args => Ok(Val::string(get(args)?.port()));
    get_escaped_path: args => Ok(Val::string(&get(args)?.path));
}

pub fn get_query<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    let url = get(args)?;
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
