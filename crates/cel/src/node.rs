//! The nodes of programs. Variables are slots, functions are pointers.

use crate::ast::Literal;
use crate::decl::types::Type;
use crate::library::costs::Charge;
use crate::library::{Function, OverloadIndex};
use crate::regex::Regex;
use crate::value::{Error, Map, Timestamp, Val};
use machinery::Text;
use std::sync::Arc;

/// A constant; unlike values it may be shared between threads.
#[derive(Clone, Debug)]
pub(crate) enum Const {
    Literal(Literal),
    Duration(i64),
    Timestamp(Timestamp),
    Type(Arc<Type>),
    List(Arc<[Const]>),
    Map(Arc<[(Const, Const)]>),
}

#[derive(Debug)]
pub(crate) enum Node {
    Const(Const),
    /// An error that the lenient checker has left to the evaluation.
    Fail(Error),
    Attribute(Box<Attribute>),
    Has(Box<Attribute>),
    And(Box<[Node; 2]>),
    Or(Box<[Node; 2]>),
    Conditional(Box<[Node; 3]>),
    Equal {
        sides: Box<[Node; 2]>,
        negated: bool,
    },
    Order {
        sides: Box<[Node; 2]>,
        order: Order,
        cost: Charge,
    },
    Call(Box<Call>),
    Regex(Box<RegexCall>),
    /// Membership in a list of constants.
    InConstants(Box<(Node, Vec<Const>)>),
    List {
        items: Box<[Node]>,
        optional: Box<[bool]>,
    },
    Map(Box<[(Node, Node, bool)]>),
    /// A message of this type: fields, and whether each is optional.
    Made(Text, Box<[(Text, Node, bool)]>),
    Fold(Box<Fold>),
    Quantifier(Box<Quantifier>),
    Bind(Box<Bind>),
    /// `accumulator + [item]`.
    Append {
        accu: u32,
        item: Box<Node>,
        /// The cost of the call, and of creating the list unless it is a constant.
        charge: u64,
    },
    Insert {
        accu: u32,
        parts: Box<[Node]>,
    },
    /// `or` and `orValue`, which evaluate their argument only if needed.
    OptionalOr {
        sides: Box<[Node; 2]>,
        value: bool,
    },
}

/// A variable or value, and the qualifiers that are applied to it.
#[derive(Debug)]
pub(crate) struct Attribute {
    pub base: Base,
    pub qualifiers: Vec<Qualifier>,
    /// Whether it costs nothing by itself, as a branch of a conditional.
    pub free: bool,
}

#[derive(Debug)]
pub(crate) enum Base {
    Slot(u32),
    Node(Node),
}

#[derive(Debug)]
pub(crate) struct Qualifier {
    pub kind: QualifierKind,
    pub optional: bool,
}

impl Qualifier {
    /// The name of the field, if the qualifier is a field that must exist.
    pub fn field(&self) -> Option<&str> {
        match &self.kind {
            QualifierKind::Field(name) if !self.optional => Some(name),
            _ => None,
        }
    }
}

#[derive(Debug)]
pub(crate) enum QualifierKind {
    Field(Text),
    Constant(Const),
    Node(Node),
}

#[derive(Debug)]
pub(crate) struct Call {
    pub function: &'static str,
    /// The function to call if it is known; otherwise the types of the arguments decide.
    pub known: Option<Function>,
    pub overloads: &'static [OverloadIndex],
    pub args: Box<[Node]>,
    pub cost: Charge,
}

#[derive(Debug)]
pub(crate) enum RegexKind {
    Matches,
    Find,
    FindAll,
}

/// A call with a constant pattern.
#[derive(Debug)]
pub(crate) struct RegexCall {
    pub kind: RegexKind,
    pub regex: Regex,
    pub args: Box<[Node]>,
    pub cost: Charge,
}

#[derive(Debug)]
pub(crate) struct Fold {
    pub range: Node,
    pub var: u32,
    pub var2: Option<u32>,
    pub accu: u32,
    pub init: Node,
    pub condition: Node,
    pub step: Node,
    pub result: Node,
}

/// `all` (decisive: false) or `exists` (decisive: true).
#[derive(Debug)]
pub(crate) struct Quantifier {
    pub range: Node,
    pub var: u32,
    pub var2: Option<u32>,
    pub predicate: Node,
    pub decisive: bool,
}

machinery::text_enum! {
    /// A comparison, by the name of its function.
    #[derive(Clone, Copy, Debug)]
    pub(crate) enum Order {
        Less = "_<_",
        LessEquals = "_<=_",
        Greater = "_>_",
        GreaterEquals = "_>=_",
    }
}

impl Order {
    pub(crate) fn holds(self, found: std::cmp::Ordering) -> bool {
        match self {
            Order::Less => found.is_lt(),
            Order::LessEquals => found.is_le(),
            Order::Greater => found.is_gt(),
            Order::GreaterEquals => found.is_ge(),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Bind {
    pub slot: u32,
    pub init: Node,
    pub result: Node,
}

/// An expression ready to be evaluated. Cheap to share.
#[derive(Debug)]
pub struct Program {
    pub(crate) root: Node,
    pub(crate) slots: usize,
    /// The names of the environment's variables, in the order of their slots.
    pub(crate) names: Box<[Text]>,
    /// Whether optional values are as in cel-go until Kubernetes 1.36.
    pub legacy_optionals: bool,
}

impl Const {
    pub(crate) fn value(&self) -> Val<'_> {
        match self {
            Const::Literal(Literal::Null) => Val::Null,
            Const::Literal(Literal::Bool(b)) => Val::Bool(*b),
            Const::Literal(Literal::Int(i)) => Val::Int(*i),
            Const::Literal(Literal::Uint(u)) => Val::Uint(*u),
            Const::Literal(Literal::Double(d)) => Val::Double(*d),
            Const::Literal(Literal::String(s)) => Val::borrowed(s),
            Const::Literal(Literal::Bytes(b)) => Val::Bytes(b.clone()),
            Const::Duration(d) => Val::Duration(*d),
            Const::Timestamp(t) => Val::Timestamp(*t),
            Const::Type(t) => Val::Type(t.clone()),
            Const::List(items) => Val::list(items.iter().map(Const::value).collect()),
            Const::Map(entries) => {
                let pairs = entries.iter().filter_map(|(k, v)| Some((crate::value::Key::of(&k.value())?, v.value())));
                Val::Map(Map::Owned(std::rc::Rc::new(pairs.collect())))
            }
        }
    }

    pub(crate) fn of(value: &Val<'_>) -> Option<Const> {
        Some(match value {
            Val::Null => Const::Literal(Literal::Null),
            Val::Bool(b) => Const::Literal(Literal::Bool(*b)),
            Val::Int(i) => Const::Literal(Literal::Int(*i)),
            Val::Uint(u) => Const::Literal(Literal::Uint(*u)),
            Val::Double(d) => Const::Literal(Literal::Double(*d)),
            Val::String(s) => Const::Literal(Literal::String(Text::new(&**s))),
            Val::Bytes(b) => Const::Literal(Literal::Bytes(b.clone())),
            Val::Duration(d) => Const::Duration(*d),
            Val::Timestamp(t) => Const::Timestamp(*t),
            Val::Type(t) => Const::Type(t.clone()),
            Val::List(list) => {
                let items: Option<Vec<Const>> = list.iter().map(|item| Const::of(&item.ok()?)).collect();
                Const::List(items?.into())
            }
            Val::Map(map @ Map::Owned(_)) => {
                let pair =
                    |(key, value): (Val<'_>, Result<Val<'_>, _>)| Some((Const::of(&key)?, Const::of(&value.ok()?)?));
                let entries: Option<Vec<(Const, Const)>> = map.entries().into_iter().map(pair).collect();
                Const::Map(entries?.into())
            }
            _ => return None,
        })
    }
}
