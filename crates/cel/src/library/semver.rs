//! The functions of semantic versions.

use crate::value::semver::{Parsed, Version};
use crate::value::{Error, Opaque, Result, Val};
use std::cmp::Ordering;

/// The version of a text; if the second argument is true, after it has been normalized.
fn parse(args: &[Val<'_>]) -> Result<Parsed<Version>> {
    match args {
        [Val::String(text)] | [Val::String(text), Val::Bool(false)] => Ok(Version::parse(text)),
        [Val::String(text), Val::Bool(true)] => Ok(Version::normalized(text)),
        _ => Err(Error::overload()),
    }
}

fn get<'a>(value: Option<&'a Val<'_>>) -> Result<&'a Version> {
    let Some(Val::Opaque(opaque)) = value else { return Err(Error::overload()) };
    if let Opaque::Semver(version) = &**opaque { Ok(version) } else { Err(Error::overload()) }
}

fn part<'a>(args: &[Val<'a>], at: usize) -> Result<Val<'a>> {
    Ok(Val::Int(get(args.first())?.numbers[at] as i64))
}

fn order(args: &[Val<'_>]) -> Result<Ordering> {
    Ok(get(args.first())?.compare(get(args.get(1))?))
}

overloads! {
    semver: args => parse(args)?.map(|version| Val::opaque(Opaque::Semver(version))).map_err(Error::new);
    is_semver: args => Ok(Val::Bool(parse(args)?.is_ok()));
    major: args => part(args, 0);
    minor: args => part(args, 1);
    patch: args => part(args, 2);
    is_less_than: args => order(args).map(|order| Val::Bool(order.is_lt()));
    is_greater_than: args => order(args).map(|order| Val::Bool(order.is_gt()));
    compare_to: args => order(args).map(|order| Val::Int(order as i64));
}
