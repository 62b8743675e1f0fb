//! The functions of the `authorizer` of admission expressions.

use crate::value::authorization::{Authorization, Check, CheckStep, Decision};
use crate::value::{Error, Result, Val};
use machinery::Text;

/// The receiver and the texts of a call.
fn parts<'v, 'a, const N: usize>(args: &'v [Val<'a>]) -> Result<(&'v Authorization<'a>, [Text; N])> {
    let Some((Val::Authorization(receiver), rest)) = args.split_first() else { return Err(Error::overload()) };
    let mut texts = [const { Text::new_static("") }; N];
    if rest.len() != N {
        return Err(Error::overload());
    }
    for (text, arg) in texts.iter_mut().zip(rest) {
        let Val::String(given) = arg else { return Err(Error::overload()) };
        *text = Text::new(&**given);
    }
    Ok((receiver, texts))
}

pub fn path<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    let (authorizer, [path]) = parts(args)?;
    if path.is_empty() {
        return Err(Error::new("path must not be empty"));
    }
    Ok(authorizer.next(CheckStep::Path, |check| check.path = path))
}

pub fn service_account<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    let (authorizer, [namespace, name]) = parts(args)?;
    if !machinery::names::dns1123_label(&namespace).is_empty() {
        return Err(Error::new("Invalid service account namespace"));
    }
    if !machinery::names::dns1123_subdomain(&name).is_empty() {
        return Err(Error::new("Invalid service account name"));
    }
    Ok(authorizer.next(CheckStep::Authorizer, |check| check.service_account = Some((namespace, name))))
}

/// The check with one more text.
fn with<'a>(args: &[Val<'a>], step: CheckStep, set: fn(&mut Check, Text)) -> Result<Val<'a>> {
    let (receiver, [text]) = parts(args)?;
    Ok(receiver.next(step, |check| set(check, text)))
}

overloads! {
    group: args => with(args, CheckStep::Group, |check, group| check.group = group);
    resource: args => with(args, CheckStep::Resource, |check, resource| check.resource = resource);
    subresource: args => with(args, CheckStep::Resource, |check, subresource| check.subresource = subresource);
    namespace: args => with(args, CheckStep::Resource, |check, namespace| check.namespace = namespace);
    name: args => with(args, CheckStep::Resource, |check, name| check.name = name);
    /// Accepts a selector and ignores it: authorizers without support for selectors, such as RBAC, decide about all objects.
    selector: args => with(args, CheckStep::Resource, |_, _| {});
}

pub fn check<'a>(args: &[Val<'a>]) -> Result<Val<'a>> {
    let (target, [verb]) = parts(args)?;
    let check = Check { verb, ..target.check.clone() };
    let decision = target.authorizer.decide(&check);
    Ok(target.next(CheckStep::Decision(decision), |_| {}))
}

fn decision<'v>(args: &'v [Val<'_>]) -> Result<&'v Decision> {
    let (decided, []) = parts(args)?;
    let CheckStep::Decision(decision) = &decided.step else { return Err(Error::overload()) };
    Ok(decision)
}

overloads! {
    allowed: args => Ok(Val::Bool(decision(args)?.allowed));
    reason: args => Ok(Val::string(&decision(args)?.reason));
    error: args => Ok(Val::string(&decision(args)?.error));
    errored: args => Ok(Val::Bool(!decision(args)?.error.is_empty()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Authorizer;
    use crate::decl::types::Type;
    use crate::{Environment, Program};

    /// Allows all requests of `bot`, and requests of all users to get secrets of `open` and the path `/open`.
    #[derive(Debug)]
    struct TestAuthorizer;

    impl Authorizer for TestAuthorizer {
        fn decide(&self, check: &Check) -> Decision {
            let bot = check.service_account.as_ref().is_some_and(|(namespace, name)| namespace == "n" && name == "bot");
            let secrets = check.resource == "secrets" && check.namespace == "open" && check.verb == "get";
            let allowed = bot || secrets || check.path == "/open" || check.name == "mine";
            Decision {
                allowed,
                reason: format!("{} {}", check.verb, check.subresource),
                error: check.group.to_string(),
            }
        }
    }

    #[test]
    fn authorizer_library_queries_the_authorizer() {
        let cases = [
            ("authorizer.group('').resource('secrets').namespace('open').check('get').allowed()", Ok(true)),
            ("authorizer.group('').resource('secrets').namespace('shut').check('get').allowed()", Ok(false)),
            ("authorizer.path('/open').check('get').allowed()", Ok(true)),
            ("authorizer.path('').check('get').allowed()", Err("path must not be empty")),
            ("authorizer.serviceAccount('n','bot').path('/x').check('get').allowed()", Ok(true)),
            (
                "authorizer.serviceAccount('N','bot').path('/x').check('get').allowed()",
                Err("Invalid service account namespace"),
            ),
            (
                "authorizer.serviceAccount('n','b/t').path('/x').check('get').allowed()",
                Err("Invalid service account name"),
            ),
            ("authorizer.group('g').resource('r').subresource('s').check('get').reason() == 'get s'", Ok(true)),
            ("authorizer.group('g').resource('r').check('get').errored()", Ok(true)),
            ("authorizer.group('g').resource('r').check('get').error() == 'g'", Ok(true)),
            ("authorizer.group('').resource('r').check('get').errored()", Ok(false)),
            ("authorizer.group('').resource('r').labelSelector('a=b').name('mine').check('get').allowed()", Ok(true)),
        ];
        let env =
            Environment::kubernetes(34).variable("authorizer", Type::Named("kubernetes.authorization.Authorizer"));
        for (text, want) in cases {
            let checked = env.check(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            let program = Program::new(&env, &checked).unwrap();
            let outcome = program.eval(&[("authorizer", Authorization::of(&TestAuthorizer))], u64::MAX);
            let found = outcome.result.map(|value| matches!(value, Val::Bool(true)));
            assert_eq!(found.as_ref().map_err(Error::text), want.as_ref().map_err(|text| *text), "{text}");
        }
    }
}
