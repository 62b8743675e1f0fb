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

pub fn semver<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    parse(args)?.map(|version| Val::opaque(Opaque::Semver(version))).map_err(Error::new)
}

pub fn is_semver<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    Ok(Val::Bool(parse(args)?.is_ok()))
}

fn with<T>(value: Option<&Val<'_>>, use_it: impl FnOnce(&Version) -> T) -> Result<T> {
    match value {
        Some(Val::Opaque(opaque)) => match &**opaque {
            Opaque::Semver(version) => Ok(use_it(version)),
            _ => Err(Error::overload()),
        },
        _ => Err(Error::overload()),
    }
}

fn part<'a>(args: &[Val<'a>], at: usize) -> Result<Val<'a>> {
    with(args.first(), |version| Val::Int(version.numbers[at] as i64))
}

pub fn major<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    part(args, 0)
}

pub fn minor<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    part(args, 1)
}

pub fn patch<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    part(args, 2)
}

fn order(args: &[Val<'_>]) -> Result<Ordering> {
    with(args.first(), |a| with(args.get(1), |b| a.compare(b)))?
}

pub fn is_less_than<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    order(args).map(|order| Val::Bool(order.is_lt()))
}

pub fn is_greater_than<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    order(args).map(|order| Val::Bool(order.is_gt()))
}

pub fn compare_to<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    order(args).map(|order| Val::Int(order as i64))
}
