//! The parser, which turns tokens into the nodes of the first document, by the grammar of YAML 1.1 as libyaml
//! implements it.

use std::collections::HashMap;

use super::error::{YamlError, YamlProblem};
use super::scanner::Scanner;
use super::token::{Place, TokenKind};
use crate::value::Text;

/// The index of a node in [`Document::nodes`].
pub type Id = u32;

pub struct YamlNode {
    pub place: Place,
    pub content: Content,
}

pub enum Content {
    Scalar {
        text: Text,
        tag: Option<Box<str>>,
        /// Whether the scalar has neither quotes nor a tag, so that its type follows from its text.
        is_implicit: bool,
    },
    Alias {
        name: Text,
        target: Id,
    },
    Sequence(Vec<Id>),
    /// Keys and values, alternating.
    Mapping(Vec<Id>),
}

/// The first document of a stream.
pub struct Document {
    pub nodes: Vec<YamlNode>,
    pub root: Id,
}

/// The next part of an open collection.
#[derive(Clone, Copy)]
enum State {
    BlockEntry,
    /// A block sequence as the value of a mapping, at the indentation of its key.
    IndentlessEntry,
    BlockKey,
    BlockValue,
    FlowFirstEntry,
    FlowEntry,
    /// `key: value` as an entry of a flow sequence.
    PairKey,
    PairValue,
    PairEnd,
    FlowFirstKey,
    FlowKey,
    FlowValue,
    /// A key of a flow mapping that has no value.
    FlowNoValue,
}

/// The context of a node.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Inside {
    /// A flow collection, which has no block collections.
    Flow,
    Block,
    /// A block mapping, whose sequences need no indentation.
    BlockMapping,
}

struct Open {
    state: State,
    id: Id,
    children: Vec<Id>,
}

/// The anchor and the tag of a node.
#[derive(Default)]
struct Properties {
    anchor: Option<String>,
    tag: Option<String>,
    place: Place,
}

/// Composes the first document; `None` if there is none.
pub fn compose(text: &[u8]) -> Result<Option<Document>, YamlError> {
    let mut composer = Composer {
        scanner: Scanner::new(text),
        nodes: vec![],
        open: vec![],
        anchors: HashMap::new(),
        handles: HashMap::new(),
        root: None,
    };
    composer.document()?;
    Ok(composer.root.map(|root| Document { nodes: composer.nodes, root }))
}

fn parse_error(place: Place, problem: &'static str) -> YamlError {
    YamlError::at(place.line as usize, YamlProblem::Parse(problem))
}

struct Composer<'a> {
    scanner: Scanner<'a>,
    nodes: Vec<YamlNode>,
    open: Vec<Open>,
    anchors: HashMap<String, Id>,
    /// The prefixes of tag handles.
    handles: HashMap<String, String>,
    root: Option<Id>,
}

impl Composer<'_> {
    fn document(&mut self) -> Result<(), YamlError> {
        let token = self.scanner.peek()?;
        let is_explicit =
            matches!(token.kind, TokenKind::Version { .. } | TokenKind::TagDirective { .. } | TokenKind::DocumentStart);
        if token.kind == TokenKind::StreamEnd {
            return Ok(());
        }
        self.directives()?;
        if is_explicit {
            let token = self.scanner.peek()?;
            if token.kind != TokenKind::DocumentStart {
                return Err(parse_error(token.place, "did not find expected <document start>"));
            }
            self.scanner.pop();
        }
        let token = self.scanner.peek()?;
        let is_empty = match token.kind {
            TokenKind::DocumentStart | TokenKind::DocumentEnd | TokenKind::StreamEnd => is_explicit,
            TokenKind::Version { .. } | TokenKind::TagDirective { .. } => is_explicit,
            _ => false,
        };
        let place = token.place;
        if is_empty {
            self.empty(place)
        } else {
            self.node(Inside::Block)?
        }
        while let Some(open) = self.open.last() {
            self.advance(open.state)?;
        }
        // an error in the token after the document is an error of the document
        self.scanner.peek().map(drop)
    }

    fn directives(&mut self) -> Result<(), YamlError> {
        let mut has_version = false;
        loop {
            let token = self.scanner.peek()?;
            match &token.kind {
                TokenKind::Version { .. } if has_version => {
                    return Err(parse_error(token.place, "found duplicate %YAML directive"));
                }
                TokenKind::Version { major: 1, minor: 1 } => has_version = true,
                TokenKind::Version { .. } => return Err(parse_error(token.place, "found incompatible YAML document")),
                TokenKind::TagDirective { handle, prefix } => {
                    if self.handles.insert(handle.clone(), prefix.clone()).is_some() {
                        return Err(parse_error(token.place, "found duplicate %TAG directive"));
                    }
                }
                _ => break,
            }
            self.scanner.pop();
        }
        self.handles.entry("!".to_owned()).or_insert_with(|| "!".to_owned());
        self.handles.entry("!!".to_owned()).or_insert_with(|| "tag:yaml.org,2002:".to_owned());
        Ok(())
    }

    fn advance(&mut self, state: State) -> Result<(), YamlError> {
        match state {
            State::BlockEntry => self.block_entry(),
            State::IndentlessEntry => self.indentless_entry(),
            State::BlockKey => self.block_key(),
            State::BlockValue => self.block_value(),
            State::FlowFirstEntry => self.flow_entry(),
            State::FlowEntry => {
                self.flow_comma(&TokenKind::FlowSequenceEnd, "did not find expected ',' or ']'")?;
                self.flow_entry()
            }
            State::PairKey => self.pair_key(),
            State::PairValue => self.pair_value(),
            State::PairEnd => {
                self.scanner.peek()?;
                self.close();
                Ok(())
            }
            State::FlowFirstKey => self.flow_key(),
            State::FlowKey => {
                self.flow_comma(&TokenKind::FlowMappingEnd, "did not find expected ',' or '}'")?;
                self.flow_key()
            }
            State::FlowValue => self.flow_value(),
            State::FlowNoValue => {
                let place = self.scanner.peek()?.place;
                self.expect(State::FlowKey);
                self.empty(place);
                Ok(())
            }
        }
    }
}

/// Nodes.
impl Composer<'_> {
    fn add(&mut self, place: Place, content: Content) -> Id {
        self.nodes.push(YamlNode { place, content });
        Id::try_from(self.nodes.len() - 1).unwrap_or(Id::MAX)
    }

    /// Appends a node to the innermost open collection. Without an open collection, the node is the root.
    fn attach(&mut self, id: Id) {
        match self.open.last_mut() {
            Some(open) => open.children.push(id),
            None => self.root = Some(id),
        }
    }

    /// Appends an empty scalar in place of an omitted node.
    fn empty(&mut self, place: Place) {
        let id = self.add(place, Content::Scalar { text: Text::default(), tag: None, is_implicit: true });
        self.attach(id);
    }

    fn start(&mut self, properties: Properties, state: State, content: Content) {
        let id = self.add(properties.place, content);
        self.name(properties.anchor, id);
        self.attach(id);
        self.open.push(Open { state, id, children: vec![] });
    }

    /// Consumes the token that closes the innermost open collection.
    fn close_at_token(&mut self) {
        self.scanner.pop();
        self.close();
    }

    /// Closes the innermost open collection.
    fn close(&mut self) {
        let Some(open) = self.open.pop() else { return };
        if let Some(YamlNode { content: Content::Sequence(children) | Content::Mapping(children), .. }) =
            self.nodes.get_mut(open.id as usize)
        {
            *children = open.children;
        }
    }

    fn name(&mut self, anchor: Option<String>, id: Id) {
        if let Some(anchor) = anchor {
            self.anchors.insert(anchor, id);
        }
    }

    /// Sets what the innermost open collection expects after the next node.
    fn expect(&mut self, state: State) {
        if let Some(open) = self.open.last_mut() {
            open.state = state;
        }
    }

    fn properties(&mut self) -> Result<Properties, YamlError> {
        let mut properties = Properties { place: self.scanner.peek()?.place, ..Properties::default() };
        let mut tag = None;
        loop {
            let token = self.scanner.peek()?;
            let fits = match &token.kind {
                TokenKind::Anchor(_) => properties.anchor.is_none(),
                TokenKind::Tag { .. } => tag.is_none(),
                _ => false,
            };
            let Some(token) = fits.then(|| self.scanner.pop()).flatten() else { break };
            match token.kind {
                TokenKind::Anchor(name) => properties.anchor = Some(name),
                TokenKind::Tag { handle, suffix } => tag = Some((handle, suffix, token.place)),
                _ => {}
            }
        }
        if let Some((handle, suffix, place)) = tag {
            let prefix = if handle.is_empty() { Some("") } else { self.handles.get(&handle).map(String::as_str) };
            let name = prefix.map(|prefix| format!("{prefix}{suffix}")).filter(|name| !name.is_empty());
            properties.tag = Some(name.ok_or_else(|| parse_error(place, "found undefined tag handle"))?);
        }
        Ok(properties)
    }

    /// Parses a scalar or an alias, or the beginning of a collection.
    fn node(&mut self, inside: Inside) -> Result<(), YamlError> {
        if let TokenKind::Alias(_) = self.scanner.peek()?.kind {
            return self.alias();
        }
        let properties = self.properties()?;
        let token = self.scanner.peek()?;
        match token.kind {
            TokenKind::Scalar { .. } => self.scalar(properties),
            TokenKind::BlockEntry if inside == Inside::BlockMapping => {
                self.start(properties, State::IndentlessEntry, Content::Sequence(vec![]));
            }
            TokenKind::FlowSequenceStart => {
                self.start_after(properties, State::FlowFirstEntry, Content::Sequence(vec![]))
            }
            TokenKind::FlowMappingStart => self.start_after(properties, State::FlowFirstKey, Content::Mapping(vec![])),
            TokenKind::BlockSequenceStart if inside != Inside::Flow => {
                self.start_after(properties, State::BlockEntry, Content::Sequence(vec![]));
            }
            TokenKind::BlockMappingStart if inside != Inside::Flow => {
                self.start_after(properties, State::BlockKey, Content::Mapping(vec![]));
            }
            _ if properties.anchor.is_some() || properties.tag.is_some() => {
                let is_implicit = properties.tag.is_none();
                self.add_scalar(properties, Text::default(), is_implicit);
            }
            _ => return Err(parse_error(token.place, "did not find expected node content")),
        }
        Ok(())
    }

    /// As [`Composer::start`], for a collection with an opening token, which is consumed.
    fn start_after(&mut self, properties: Properties, state: State, content: Content) {
        self.scanner.pop();
        self.start(properties, state, content);
    }

    fn alias(&mut self) -> Result<(), YamlError> {
        let Some(token) = self.scanner.pop() else { return Ok(()) };
        if let TokenKind::Alias(name) = token.kind {
            let target = self.anchors.get(&name).copied();
            let target = target.ok_or_else(|| {
                let why = format!("unknown anchor '{name}' referenced");
                YamlError::at(token.place.line as usize, YamlProblem::Document(why))
            })?;
            let id = self.add(token.place, Content::Alias { name: name.into(), target });
            self.attach(id);
        }
        Ok(())
    }

    fn scalar(&mut self, properties: Properties) {
        if let Some(TokenKind::Scalar { text, plain }) = self.scanner.pop().map(|token| token.kind) {
            let is_implicit = properties.tag.as_ref().map_or(plain, |tag| tag == "!");
            self.add_scalar(properties, text, is_implicit);
        }
    }

    fn add_scalar(&mut self, properties: Properties, text: Text, is_implicit: bool) {
        let tag = properties.tag.map(String::into_boxed_str);
        let id = self.add(properties.place, Content::Scalar { text, tag, is_implicit });
        self.name(properties.anchor, id);
        self.attach(id);
    }
}

/// Block collections.
impl Composer<'_> {
    fn block_entry(&mut self) -> Result<(), YamlError> {
        let token = self.scanner.peek()?;
        let place = token.place;
        match token.kind {
            TokenKind::BlockEntry => {
                self.scanner.pop();
                match self.scanner.peek()?.kind {
                    TokenKind::BlockEntry | TokenKind::BlockEnd => self.empty(place),
                    _ => self.node(Inside::Block)?,
                }
            }
            TokenKind::BlockEnd => self.close_at_token(),
            _ => return Err(parse_error(place, "did not find expected '-' indicator")),
        }
        Ok(())
    }

    fn indentless_entry(&mut self) -> Result<(), YamlError> {
        let token = self.scanner.peek()?;
        let place = token.place;
        if token.kind != TokenKind::BlockEntry {
            self.close();
            return Ok(());
        }
        self.scanner.pop();
        match self.scanner.peek()?.kind {
            TokenKind::BlockEntry | TokenKind::Key | TokenKind::Value | TokenKind::BlockEnd => self.empty(place),
            _ => self.node(Inside::Block)?,
        }
        Ok(())
    }

    fn block_key(&mut self) -> Result<(), YamlError> {
        let token = self.scanner.peek()?;
        let place = token.place;
        match token.kind {
            TokenKind::Key => {
                self.expect(State::BlockValue);
                self.block_node(place)
            }
            TokenKind::BlockEnd => {
                self.close_at_token();
                Ok(())
            }
            _ => Err(parse_error(place, "did not find expected key")),
        }
    }

    fn block_value(&mut self) -> Result<(), YamlError> {
        let token = self.scanner.peek()?;
        let place = token.place;
        let has_value = token.kind == TokenKind::Value;
        self.expect(State::BlockKey);
        if has_value {
            return self.block_node(place);
        }
        self.empty(place);
        Ok(())
    }

    /// Consumes `?` or `:` and parses the node after it.
    fn block_node(&mut self, place: Place) -> Result<(), YamlError> {
        self.scanner.pop();
        match self.scanner.peek()?.kind {
            TokenKind::Key | TokenKind::Value | TokenKind::BlockEnd => self.empty(place),
            _ => self.node(Inside::BlockMapping)?,
        }
        Ok(())
    }
}

/// Flow collections.
impl Composer<'_> {
    /// Consumes the comma before an entry that is not the first, unless the collection ends here.
    fn flow_comma(&mut self, end: &TokenKind, problem: &'static str) -> Result<(), YamlError> {
        let token = self.scanner.peek()?;
        if token.kind == *end {
            return Ok(());
        }
        if token.kind != TokenKind::FlowEntry {
            return Err(parse_error(token.place, problem));
        }
        self.scanner.pop();
        self.scanner.peek().map(drop)
    }

    fn flow_entry(&mut self) -> Result<(), YamlError> {
        let token = self.scanner.peek()?;
        let place = token.place;
        match token.kind {
            TokenKind::FlowSequenceEnd => self.close_at_token(),
            TokenKind::Key => {
                self.expect(State::FlowEntry);
                let properties = Properties { place, ..Properties::default() };
                self.start_after(properties, State::PairKey, Content::Mapping(vec![]));
            }
            _ => {
                self.expect(State::FlowEntry);
                self.node(Inside::Flow)?;
            }
        }
        Ok(())
    }

    fn pair_key(&mut self) -> Result<(), YamlError> {
        let token = self.scanner.peek()?;
        let place = token.place;
        let is_empty = matches!(token.kind, TokenKind::Value | TokenKind::FlowEntry | TokenKind::FlowSequenceEnd);
        self.expect(State::PairValue);
        if !is_empty {
            return self.node(Inside::Flow);
        }
        // as in upstream, a pair without a key loses its value
        self.scanner.pop();
        self.empty(place);
        Ok(())
    }

    fn pair_value(&mut self) -> Result<(), YamlError> {
        let token = self.scanner.peek()?;
        let place = token.place;
        let has_value = token.kind == TokenKind::Value;
        self.expect(State::PairEnd);
        if has_value {
            self.scanner.pop();
            if !matches!(self.scanner.peek()?.kind, TokenKind::FlowEntry | TokenKind::FlowSequenceEnd) {
                return self.node(Inside::Flow);
            }
        }
        self.empty(place);
        Ok(())
    }

    fn flow_key(&mut self) -> Result<(), YamlError> {
        match self.scanner.peek()?.kind {
            TokenKind::FlowMappingEnd => {
                self.close_at_token();
                Ok(())
            }
            TokenKind::Key => {
                self.expect(State::FlowValue);
                self.scanner.pop();
                self.flow_explicit_key()
            }
            _ => {
                self.expect(State::FlowNoValue);
                self.node(Inside::Flow)
            }
        }
    }

    fn flow_value(&mut self) -> Result<(), YamlError> {
        let token = self.scanner.peek()?;
        let place = token.place;
        let has_value = token.kind == TokenKind::Value;
        self.expect(State::FlowKey);
        if !has_value {
            self.empty(place);
            return Ok(());
        }
        self.scanner.pop();
        match self.scanner.peek()?.kind {
            TokenKind::FlowEntry | TokenKind::FlowMappingEnd => {
                let place = self.scanner.peek()?.place;
                self.empty(place);
                Ok(())
            }
            _ => self.node(Inside::Flow),
        }
    }

    /// Parses the key after `?`.
    fn flow_explicit_key(&mut self) -> Result<(), YamlError> {
        let token = self.scanner.peek()?;
        let place = token.place;
        if !matches!(token.kind, TokenKind::Value | TokenKind::FlowEntry | TokenKind::FlowMappingEnd) {
            return self.node(Inside::Flow);
        }
        self.empty(place);
        Ok(())
    }
}
