//! The positions of the fields of a document.

use super::compose::{Content, Document, Id, compose};
use super::error::YamlError;
use super::token::Place;

/// A step from a value to a value in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldStep {
    /// The field of an object.
    Field(String),
    /// The item of an array, counted from 0.
    Item(usize),
}

/// A position in a text: a line and a column in characters, both counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

impl From<Place> for Position {
    fn from(place: Place) -> Position {
        Position { line: place.line as usize + 1, column: place.column as usize + 1 }
    }
}

/// The place of a value, or of the nearest value around it that the text has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Located {
    /// The key of the field; `None` for the root and for items.
    pub key: Option<Position>,
    /// The first character of the value. For a block collection that is the first character of its first key or dash.
    pub value: Position,
    /// Whether the value is a scalar.
    pub is_scalar: bool,
    /// The number of steps of the path that the text has.
    pub depth: usize,
}

/// The positions of the first document of a text, which may be JSON.
pub struct Positions(Option<Document>);

impl Positions {
    /// Parses the text. Fails for texts that are not YAML.
    pub fn of(text: &[u8]) -> Result<Positions, YamlError> {
        compose(text).map(Positions)
    }

    /// Locates the value at a path, in time linear in the siblings of its steps. Values that a merge key adds have the place
    /// that they have in the mapping that is merged.
    pub fn locate(&self, path: &[FieldStep]) -> Located {
        let start = Position { line: 1, column: 1 };
        let Some(document) = &self.0 else { return Located { key: None, value: start, is_scalar: false, depth: 0 } };
        let mut located = document.located(None, document.root, 0);
        let mut id = document.root;
        for (i, step) in path.iter().enumerate() {
            let Some((key, value)) = document.child(id, step) else { break };
            located = document.located(key, value, i + 1);
            id = value;
        }
        located
    }
}

impl Document {
    /// The key and the value of a step.
    fn child(&self, id: Id, step: &FieldStep) -> Option<(Option<Id>, Id)> {
        match (&self.resolved(id)?.content, step) {
            (Content::Sequence(items), FieldStep::Item(index)) => Some((None, *items.get(*index)?)),
            // paths name the keys of maps in brackets, and a key may be a number
            (Content::Mapping(_), FieldStep::Item(index)) => self.child(id, &FieldStep::Field(index.to_string())),
            (Content::Mapping(pairs), FieldStep::Field(name)) => {
                self.value_of(pairs, name).or_else(|| self.merged(pairs, name))
            }
            _ => None,
        }
    }

    /// The key with this text in the pairs of a mapping, and its value.
    fn value_of(&self, pairs: &[Id], name: &str) -> Option<(Option<Id>, Id)> {
        let is_key = |id: &Id| {
            matches!(self.nodes.get(*id as usize).map(|node| &node.content),
            Some(Content::Scalar { text, .. }) if text == name)
        };
        // the last one of duplicate keys is the one that is decoded
        let mut pairs = pairs.chunks_exact(2).rev();
        let found = pairs.find(|pair| pair.first().is_some_and(is_key))?;
        Some((found.first().copied(), *found.get(1)?))
    }

    /// The key and the value in a mapping that a merge key names; of several, the first one that has it counts.
    fn merged(&self, pairs: &[Id], name: &str) -> Option<(Option<Id>, Id)> {
        let (_, merged) = self.value_of(pairs, "<<")?;
        let of_mapping = |id: Id| match &self.resolved(id)?.content {
            Content::Mapping(pairs) => self.value_of(pairs, name),
            _ => None,
        };
        match &self.resolved(merged)?.content {
            Content::Sequence(items) => items.iter().find_map(|id| of_mapping(*id)),
            _ => of_mapping(merged),
        }
    }

    fn resolved(&self, id: Id) -> Option<&super::compose::YamlNode> {
        let node = self.nodes.get(id as usize)?;
        match node.content {
            // an alias names a node that is not an alias
            Content::Alias { target, .. } => self.nodes.get(target as usize),
            _ => Some(node),
        }
    }

    fn located(&self, key: Option<Id>, value: Id, depth: usize) -> Located {
        let node = |id: Id| self.nodes.get(id as usize);
        let place = |id: Id| node(id).map(|node| Position::from(node.place));
        let is_scalar =
            matches!(node(value).map(|node| &node.content), Some(Content::Scalar { .. } | Content::Alias { .. }));
        let value = place(value).unwrap_or(Position { line: 1, column: 1 });
        Located { key: key.and_then(place), value, is_scalar, depth }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Vec<FieldStep> {
        let step = |step: &str| step.parse().map_or_else(|_| FieldStep::Field(step.to_owned()), FieldStep::Item);
        text.split('/').filter(|step| !step.is_empty()).map(step).collect()
    }

    #[test]
    fn fields_are_located() {
        let text = "# a comment\na: 1\nb:\n  c: [x, {d: \"e\"}]\n  'f': &g\n  - h: i\n    j: >-\n      k\nl: *g\nb2: {c: 1, c: 2, 3: 4}\n";
        let merged = "x: &x {p: 1, q: 2}\ny:\n  <<: {r: 3}\n  p: 4\nz:\n  <<: [{q: 5}, *x]\n";
        let json = "{\"a\": 1,\n  \"b\": {\"c\": [\"x\", {\"d\": 2}]}}";
        for (text, at, key, value, depth) in [
            (text, "", None, (2, 1), 0),
            (text, "a", Some((2, 1)), (2, 4), 1),
            (text, "b", Some((3, 1)), (4, 3), 1),
            (text, "b/c/0", None, (4, 7), 3),
            (text, "b/c/1/d", Some((4, 11)), (4, 14), 4),
            (text, "b/f/0/j", Some((7, 5)), (7, 8), 4),
            (text, "b/f/1/j", Some((5, 3)), (5, 8), 2),
            (text, "l/0/h", Some((6, 5)), (6, 8), 3),
            (text, "b2/c", Some((10, 12)), (10, 15), 2),
            (text, "b2/3", Some((10, 18)), (10, 21), 2),
            (text, "z/y", None, (2, 1), 0),
            (merged, "y/r", Some((3, 8)), (3, 11), 2),
            (merged, "y/p", Some((4, 3)), (4, 6), 2),
            (merged, "z/q", Some((6, 9)), (6, 12), 2),
            (merged, "z/p", Some((1, 8)), (1, 11), 2),
            (json, "b/c/1/d", Some((2, 21)), (2, 26), 4),
        ] {
            let located = Positions::of(text.as_bytes()).unwrap().locate(&path(at));
            let pair = |position: Position| (position.line, position.column);
            assert_eq!((located.key.map(pair), pair(located.value), located.depth), (key, value, depth), "{at}");
        }
        assert!(Positions::of(b"a: [").is_err());
        assert_eq!(Positions::of(b"").unwrap().locate(&path("a")).depth, 0);
    }
}
