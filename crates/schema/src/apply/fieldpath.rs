//! Sets of field paths, as in `fieldsV1`: a trie with sorted entries. A path belongs to the set if its node is a member;
//! other nodes are only on the way to members.

use machinery::{Text, Value};
use std::cmp::Ordering;
use std::fmt::{self, Display, Write as _};

/// One step of a path.
#[derive(Clone, Debug)]
pub enum PathElement {
    /// `f:` a field of an object.
    TypeField(Text),
    /// `k:` an item of a list, by the values of its keys (sorted by name).
    Key(Box<[(Text, Value)]>),
    /// `v:` an item of a set, by value.
    Value(Box<Value>),
    /// `i:` an item of a list, by position.
    Index(i64),
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Int(_) | Value::Float(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) | Value::Encoded(_) => 4,
        Value::Null => 5,
    }
}

/// A total order of values. Numbers compare by amount, whether they are integers or floats.
pub fn compare_values(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::Int(_) | Value::Float(_), Value::Int(_) | Value::Float(_)) => {
            let (a, b) = (a.as_float().unwrap_or_default(), b.as_float().unwrap_or_default());
            a.partial_cmp(&b).unwrap_or(Ordering::Equal)
        }
        (Value::String(a), Value::String(b)) => a.as_str().cmp(b.as_str()),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Encoded(text), other @ (Value::Object(_) | Value::Encoded(_))) => {
            compare_values(&Value::of_encoded(text), other)
        }
        (other @ Value::Object(_), Value::Encoded(text)) => compare_values(other, &Value::of_encoded(text)),
        (Value::Array(a), Value::Array(b)) => {
            let first = a.iter().zip(b).map(|(a, b)| compare_values(a, b)).find(|o| o.is_ne());
            first.unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        (Value::Object(a), Value::Object(b)) => {
            let mut pairs = a.iter().zip(b.iter());
            let first = pairs.find_map(|((ka, va), (kb, vb))| {
                let order = ka.as_str().cmp(kb.as_str()).then_with(|| compare_values(va, vb));
                order.is_ne().then_some(order)
            });
            first.unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        _ => rank(a).cmp(&rank(b)),
    }
}

/// Equality of values in which `1` equals `1.0`.
pub fn equal_values(a: &Value, b: &Value) -> bool {
    compare_values(a, b).is_eq()
}

impl PathElement {
    pub fn field(name: &str) -> PathElement {
        PathElement::TypeField(name.into())
    }

    fn rank(&self) -> u8 {
        match self {
            Self::TypeField(_) => 0,
            Self::Key(_) => 1,
            Self::Value(_) => 2,
            Self::Index(_) => 3,
        }
    }
}

impl Ord for PathElement {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::TypeField(a), Self::TypeField(b)) => a.as_str().cmp(b.as_str()),
            (Self::Key(a), Self::Key(b)) => {
                let mut pairs = a.iter().zip(b.iter());
                let first = pairs.find_map(|((ka, va), (kb, vb))| {
                    let order = ka.as_str().cmp(kb.as_str()).then_with(|| compare_values(va, vb));
                    order.is_ne().then_some(order)
                });
                first.unwrap_or_else(|| a.len().cmp(&b.len()))
            }
            (Self::Value(a), Self::Value(b)) => compare_values(a, b),
            (Self::Index(a), Self::Index(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for PathElement {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PathElement {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for PathElement {}

/// Writes a value in the form that it has in printed paths.
fn write_value(value: &Value, out: &mut dyn fmt::Write) -> fmt::Result {
    match value {
        Value::Null => out.write_str("null"),
        Value::String(s) => out.write_str(&machinery::value::quote(s)),
        Value::Float(f) => out.write_str(&machinery::value::shortest::float(*f)),
        Value::Array(items) => {
            out.write_char('[')?;
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.write_char(',')?;
                }
                write_value(item, out)?;
            }
            out.write_char(']')
        }
        Value::Object(map) => map.iter().try_for_each(|(k, v)| {
            write!(out, "{k}=")?;
            write_value(v, out)
        }),
        Value::Encoded(text) => write_value(&Value::of_encoded(text), out),
        Value::Bool(b) => write!(out, "{b}"),
        Value::Int(i) => write!(out, "{i}"),
    }
}

impl Display for PathElement {
    /// The form in messages: `.name`, `[key="a",k2=1]`, `[="value"]`, `[0]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TypeField(name) => write!(f, ".{name}"),
            Self::Key(fields) => {
                f.write_char('[')?;
                for (i, (name, value)) in fields.iter().enumerate() {
                    if i > 0 {
                        f.write_char(',')?;
                    }
                    write!(f, "{name}=")?;
                    write_value(value, f)?;
                }
                f.write_char(']')
            }
            Self::Value(value) => {
                f.write_str("[=")?;
                write_value(value, f)?;
                f.write_char(']')
            }
            Self::Index(i) => write!(f, "[{i}]"),
        }
    }
}

/// One entry of a set: whether the path itself is a member, and which paths below it are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SetNode {
    pub member: bool,
    pub children: FieldSet,
}

impl SetNode {
    pub fn is_empty(&self) -> bool {
        !self.member && self.children.is_empty()
    }

    fn merged(mut self, other: SetNode) -> SetNode {
        self.member |= other.member;
        self.children = std::mem::take(&mut self.children).union(other.children);
        self
    }
}

/// A set of paths. The entries are sorted, and none is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet {
    entries: Vec<(PathElement, SetNode)>,
}

impl FieldSet {
    pub fn new() -> FieldSet {
        FieldSet::default()
    }

    /// The set of the given paths of field names.
    pub fn of_fields(paths: &[&[&str]]) -> FieldSet {
        let mut set = FieldSet::new();
        for path in paths {
            let mut node = SetNode { member: true, children: FieldSet::new() };
            let Some((first, rest)) = path.split_first() else { continue };
            for name in rest.iter().rev() {
                let children = FieldSet { entries: vec![(PathElement::field(name), node)] };
                node = SetNode { member: false, children };
            }
            set.insert(PathElement::field(first), node);
        }
        set
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn iter(&self) -> std::slice::Iter<'_, (PathElement, SetNode)> {
        self.entries.iter()
    }

    pub fn get(&self, element: &PathElement) -> Option<&SetNode> {
        let found = self.entries.binary_search_by(|(e, _)| e.cmp(element)).ok()?;
        self.entries.get(found).map(|(_, node)| node)
    }

    /// The entry of a field. The lookup does not allocate a path element.
    pub fn get_field(&self, name: &str) -> Option<&SetNode> {
        let order = |e: &PathElement| match e {
            PathElement::TypeField(f) => f.as_str().cmp(name),
            _ => Ordering::Greater,
        };
        let found = self.entries.binary_search_by(|(e, _)| order(e)).ok()?;
        self.entries.get(found).map(|(_, node)| node)
    }

    /// Adds what `node` holds below `element`; an empty node adds nothing.
    pub fn insert(&mut self, element: PathElement, node: SetNode) {
        if node.is_empty() {
            return;
        }
        if self.entries.last().is_none_or(|(last, _)| *last < element) {
            self.entries.push((element, node));
            return;
        }
        match self.entries.binary_search_by(|(e, _)| e.cmp(&element)) {
            Ok(at) => {
                let old = std::mem::take(&mut self.entries[at].1);
                self.entries[at].1 = old.merged(node);
            }
            Err(at) => self.entries.insert(at, (element, node)),
        }
    }

    pub fn replace(&mut self, element: &PathElement, node: SetNode) {
        if let Ok(at) = self.entries.binary_search_by(|(e, _)| e.cmp(element)) {
            self.entries[at].1 = node;
        }
    }

    /// Replaces each entry by what `keep` returns for it.
    fn filter_map(&self, mut keep: impl FnMut(&PathElement, &SetNode) -> SetNode) -> FieldSet {
        let kept = self.entries.iter().filter_map(|(element, node)| {
            let node = keep(element, node);
            (!node.is_empty()).then(|| (element.clone(), node))
        });
        FieldSet { entries: kept.collect() }
    }

    #[must_use]
    pub fn union(self, other: FieldSet) -> FieldSet {
        if self.is_empty() {
            return other;
        }
        if other.is_empty() {
            return self;
        }
        let mut entries = Vec::with_capacity(self.entries.len() + other.entries.len());
        let mut left = self.entries.into_iter().peekable();
        let mut right = other.entries.into_iter().peekable();
        loop {
            let order = match (left.peek(), right.peek()) {
                (Some((a, _)), Some((b, _))) => a.cmp(b),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => return FieldSet { entries },
            };
            match order {
                Ordering::Less => entries.extend(left.next()),
                Ordering::Greater => entries.extend(right.next()),
                Ordering::Equal => {
                    if let (Some((element, a)), Some((_, b))) = (left.next(), right.next()) {
                        entries.push((element, a.merged(b)));
                    }
                }
            }
        }
    }

    /// The union of many sets, in time proportional to the number of paths times the logarithm of the number of sets.
    pub fn union_of(mut sets: Vec<FieldSet>) -> FieldSet {
        while sets.len() > 1 {
            let mut pairs = sets.into_iter();
            let mut unions = vec![];
            while let Some(first) = pairs.next() {
                unions.push(first.union(pairs.next().unwrap_or_default()));
            }
            sets = unions;
        }
        sets.pop().unwrap_or_default()
    }

    #[must_use]
    pub fn intersection(&self, other: &FieldSet) -> FieldSet {
        self.filter_map(|element, node| match other.get(element) {
            Some(theirs) => {
                SetNode { member: node.member && theirs.member, children: node.children.intersection(&theirs.children) }
            }
            None => SetNode::default(),
        })
    }

    /// Whether the two have a member in common.
    pub fn intersects(&self, other: &FieldSet) -> bool {
        let (few, many) = if self.entries.len() <= other.entries.len() { (self, other) } else { (other, self) };
        few.entries.iter().any(|(element, node)| {
            many.get(element).is_some_and(|n| (n.member && node.member) || node.children.intersects(&n.children))
        })
    }

    /// The members of this set that are not members of `other`. Paths below a member of `other` are kept.
    #[must_use]
    pub fn difference(&self, other: &FieldSet) -> FieldSet {
        if other.is_empty() {
            return self.clone();
        }
        self.filter_map(|element, node| match other.get(element) {
            Some(theirs) => {
                SetNode { member: node.member && !theirs.member, children: node.children.difference(&theirs.children) }
            }
            None => node.clone(),
        })
    }

    /// Removes the members of `other` from this set, in place.
    pub fn remove(&mut self, other: &FieldSet) {
        if other.is_empty() {
            return;
        }
        self.entries.retain_mut(|(element, node)| {
            if let Some(theirs) = other.get(element) {
                node.member &= !theirs.member;
                node.children.remove(&theirs.children);
            }
            !node.is_empty()
        });
    }

    /// Removes the members of `other` and all paths below them from this set, in place.
    pub fn remove_recursively(&mut self, other: &FieldSet) {
        if other.is_empty() {
            return;
        }
        self.entries.retain_mut(|(element, node)| match other.get(element) {
            Some(theirs) if theirs.member => false,
            Some(theirs) => {
                node.children.remove_recursively(&theirs.children);
                !node.is_empty()
            }
            None => true,
        });
    }

    /// Whether every member of this set is a member of `other`.
    pub fn is_subset(&self, other: &FieldSet) -> bool {
        self.entries.iter().all(|(element, node)| {
            other
                .get(element)
                .is_some_and(|theirs| (theirs.member || !node.member) && node.children.is_subset(&theirs.children))
        })
    }

    /// Calls `visit` with each member. At every level, the members come first and then the paths below them.
    pub fn for_each(&self, visit: &mut impl FnMut(&str)) {
        self.walk(&mut String::new(), visit);
    }

    fn walk(&self, prefix: &mut String, visit: &mut impl FnMut(&str)) {
        let length = prefix.len();
        for (element, node) in &self.entries {
            if node.member {
                let _ = write!(prefix, "{element}");
                visit(prefix);
                prefix.truncate(length);
            }
        }
        for (element, node) in &self.entries {
            if !node.children.is_empty() {
                let _ = write!(prefix, "{element}");
                node.children.walk(prefix, visit);
                prefix.truncate(length);
            }
        }
    }

    /// The members, as messages print them.
    pub fn paths(&self) -> Vec<String> {
        let mut paths = vec![];
        self.for_each(&mut |path| paths.push(path.to_owned()));
        paths
    }
}

impl FromIterator<(PathElement, SetNode)> for FieldSet {
    /// The entries may come in any order. Nodes of equal elements are merged.
    fn from_iter<I: IntoIterator<Item = (PathElement, SetNode)>>(iter: I) -> FieldSet {
        let mut sorted: Vec<_> = iter.into_iter().filter(|(_, node)| !node.is_empty()).collect();
        if sorted.is_sorted_by(|(a, _), (b, _)| a < b) {
            return FieldSet { entries: sorted };
        }
        sorted.sort_by(|(a, _), (b, _)| a.cmp(b));
        let mut entries: Vec<(PathElement, SetNode)> = Vec::with_capacity(sorted.len());
        for (element, node) in sorted {
            match entries.last_mut() {
                Some((last, known)) if *last == element => *known = std::mem::take(known).merged(node),
                _ => entries.push((element, node)),
            }
        }
        FieldSet { entries }
    }
}
