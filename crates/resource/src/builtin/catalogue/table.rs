//! Reads the facts about kinds from the tables `kinds.txt`; the beginning of the first one describes their format.

use std::sync::OnceLock;

use machinery::Release;

use super::Catalogue;
use super::row::{
    Availability, BuiltIn, Connect, Generation, Labels, Lifecycle, OwnEndpoint, OwnSubresource, Selectable,
    StatusFacts, StatusMetadata, list, minor,
};
use crate::rules::{Dependents, MetadataRules, OnCreate, OnUpdate, Propagation};

pub struct KindGroup {
    pub name: &'static str,
    /// `groupPriorityMinimum` of its APIServices.
    pub priority: u32,
    /// Whether kube-apiserver serves the group from a separate server, which uses declarative validation for metadata
    /// only, and stores its objects like custom resources.
    pub has_own_server: bool,
    /// Whether manifests, which the server reads at its start, may have objects of the group.
    pub has_static_objects: bool,
    /// Whether the group serves no custom resources although none of its kinds is served by default.
    pub is_reserved: bool,
    /// The versions of the group, each with the `versionPriority` of its APIService.
    pub versions: Vec<(&'static str, i64)>,
}

pub struct Table {
    pub groups: Vec<KindGroup>,
    pub rows: Vec<BuiltIn>,
    catalogue: &'static Catalogue,
}

impl Table {
    /// The error names the file and the line.
    pub fn parse(catalogue: &'static Catalogue) -> Result<Table, String> {
        let mut table = Table { groups: vec![], rows: vec![], catalogue };
        for (place, line) in catalogue.sources.lines("kinds.txt", |source| source.kinds) {
            table.read(line).map_err(|why| format!("{place}: {why}"))?;
        }
        Ok(table)
    }

    fn read(&mut self, line: &'static str) -> Result<(), String> {
        if let Some(group) = line.strip_prefix("group ") {
            self.groups.push(KindGroup::parse(group)?);
            return Ok(());
        }
        if !line.starts_with(' ') {
            self.rows.push(self.row(line)?);
            return Ok(());
        }
        let row = self.rows.last_mut().ok_or("a line of a kind without the kind")?;
        match line.strip_prefix("  ") {
            Some(words) => row.set_all(words.split(' ')),
            None => row.add_subresource(line.trim_start()),
        }
    }

    /// Parses the first line of a row.
    fn row(&self, line: &'static str) -> Result<BuiltIn, String> {
        let mut words = line.split(' ');
        let mut next = || words.next().ok_or("a kind has a version, a plural, a kind, a singular and a scope");
        let (api_version, plural, kind, singular, scope) = (next()?, next()?, next()?, next()?, next()?);
        let mut row = BuiltIn::new(self.catalogue, api_version, kind);
        let group = self.groups.last().filter(|group| group.has(row.group, row.version));
        let group = group.ok_or_else(|| format!("{api_version} is not a version of the group"))?;
        (row.has_own_server, row.has_static_objects) = (group.has_own_server, group.has_static_objects);
        if let Some(newer) = self.rows.iter().rfind(|newer| **newer == row) {
            row = row.inheriting(newer);
        }
        (row.plural, row.singular) = (plural, singular);
        row.namespaced = match scope {
            "namespaced" => true,
            "cluster" => false,
            _ => return Err(format!("unknown scope {scope}")),
        };
        row.set_all(words)?;
        Ok(row)
    }
}

impl KindGroup {
    fn parse(line: &'static str) -> Result<KindGroup, String> {
        let mut words = line.split(' ').peekable();
        let name = words.next().filter(|name| *name != "core").unwrap_or_default();
        let priority = words.next().and_then(|priority| priority.parse().ok()).ok_or("a group has a priority")?;
        let has_own_server = words.next_if_eq(&"own-server").is_some();
        let has_static_objects = words.next_if_eq(&"static").is_some();
        let is_reserved = words.next_if_eq(&"reserved").is_some();
        let version = |word: &'static str| {
            let (version, priority) = word.split_once('=')?;
            Some((version, priority.parse().ok()?))
        };
        let versions = words.map(|word| version(word).ok_or(format!("no version and its priority: {word}")));
        Ok(KindGroup {
            name,
            priority,
            has_own_server,
            has_static_objects,
            is_reserved,
            versions: versions.collect::<Result<_, _>>()?,
        })
    }

    pub fn has(&self, group: &str, version: &str) -> bool {
        self.name == group && self.versions.iter().any(|(known, _)| *known == version)
    }
}

impl BuiltIn {
    /// A version of a kind without any facts.
    fn new(catalogue: &'static Catalogue, api_version: &'static str, kind: &'static str) -> BuiltIn {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let behaviour = catalogue.sources.behaviour_of(group, api_version, kind);
        BuiltIn {
            group,
            version,
            api_version,
            kind,
            plural: "",
            singular: "",
            short_names: vec![],
            categories: vec![],
            verbs: None,
            namespaced: true,
            status: None,
            scale: false,
            subresources: vec![],
            selectable: vec![],
            labels: Labels::Default,
            generation: Generation::None,
            generation_gate: None,
            metadata: MetadataRules { name: behaviour.name, ..MetadataRules::BUILT_IN },
            deletion: behaviour.deletion,
            unconditional_update: true,
            create_on_update: false,
            keeps_written: false,
            name_column: true,
            default_mark: None,
            lifecycle: Lifecycle {
                availability: Availability::Default,
                since: Release::V1_35,
                deprecated: None,
                removed: None,
                replacement: None,
            },
            gate: None,
            stored_as: None,
            folder: None,
            storage_hash: None,
            form: version,
            go_type: OnceLock::new(),
            structure: OnceLock::new(),
            ruled: OnceLock::new(),
            behaviour,
            has_own_server: false,
            has_static_objects: false,
            also_posted_as: None,
            refuses_namespaces: false,
            catalogue,
        }
    }

    /// This version with the facts of a newer one, except for the facts about where it is served and stored.
    fn inheriting(self, newer: &BuiltIn) -> BuiltIn {
        let BuiltIn { version, api_version, lifecycle, stored_as, form, structure, behaviour, .. } = self;
        BuiltIn { version, api_version, lifecycle, stored_as, form, structure, behaviour, ..newer.clone() }
    }

    fn set_all(&mut self, mut words: impl Iterator<Item = &'static str>) -> Result<(), String> {
        words.try_for_each(|word| self.set(word))
    }

    fn set(&mut self, word: &'static str) -> Result<(), String> {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        match (name, value) {
            ("short", _) => self.short_names = list(value).collect(),
            ("categories", _) => self.categories = list(value).collect(),
            ("verbs", _) => self.verbs = Some(list(value).collect()),
            ("fields", _) => self.selectable = list(value).map(Selectable::parse).collect(),
            ("selector-errors", "kind") => self.labels = Labels::OfKind,
            ("selector-errors", "version") => self.labels = Labels::OfVersion,
            ("put", _) => return list(value).try_for_each(|what| self.set_put(what)),
            ("declared", "beside") => self.keeps_written = true,
            ("also-posted-as", _) => self.also_posted_as = Some(value),
            ("namespace", "refused") => self.refuses_namespaces = true,
            ("no-name-column", "") => self.name_column = false,
            ("default-mark", _) => self.default_mark = Some(value),
            ("delete", "object") => self.deletion.returns_object = true,
            ("delete", "orphans") => self.deletion.propagation = Some(Propagation::Orphan),
            ("dependents", "ignored") => self.deletion.dependents = Dependents::Ignored,
            ("unreadable", "kept") => self.deletion.unreadable = false,
            ("generation-gate", _) => self.generation_gate = Some(value),
            ("generation", "changes") => self.generation = Generation::Changes,
            ("generation", "gated") => self.generation = Generation::Gated,
            ("generation", "literal") => self.generation = Generation::Literal,
            ("generation", "updates") => self.generation = Generation::Updates,
            _ if self.metadata.set(name, value) => {}
            _ => return self.set_lifecycle(word, name, value),
        }
        Ok(())
    }

    fn set_put(&mut self, what: &str) -> Result<(), String> {
        match what {
            "creates" => self.create_on_update = true,
            "conditional" => self.unconditional_update = false,
            _ => return Err(format!("unknown word put={what}")),
        }
        Ok(())
    }

    /// Where the version is served and stored.
    fn set_lifecycle(&mut self, word: &str, name: &str, value: &'static str) -> Result<(), String> {
        match (name, value) {
            ("on", "") => self.lifecycle.availability = Availability::On,
            ("off", "") => self.lifecycle.availability = Availability::Off,
            ("legacy", "") => self.lifecycle.availability = Availability::Legacy,
            ("unserved", "") => self.lifecycle.availability = Availability::Never,
            ("since", _) => self.lifecycle.since = release(value)?,
            ("gate", _) => self.gate = Some(value),
            ("deprecated", _) if minor(value).is_none() => return Err(format!("{value} is not a release")),
            ("deprecated", _) => self.lifecycle.deprecated = Some(value),
            ("removed", _) => self.lifecycle.removed = Some(value),
            ("use", _) => self.lifecycle.replacement = Some(value),
            ("stored-as", _) => self.stored_as = Some(value),
            ("folder", _) => self.folder = Some(value),
            ("storage-hash", _) => self.storage_hash = Some(value),
            ("form", _) => self.form = value,
            _ => return Err(format!("unknown word {word}")),
        }
        Ok(())
    }

    fn add_subresource(&mut self, line: &'static str) -> Result<(), String> {
        let mut words = line.split(' ').peekable();
        let name = words.next().unwrap_or_default();
        let given = words.next_if(|word| !word.contains('=')).map(|api_version| (api_version, words.next()));
        let verbs = words.next().and_then(|word| word.strip_prefix("verbs=")).ok_or("a subresource has verbs")?;
        let endpoint = match (name, given) {
            ("status", None) => {
                self.status = Some(StatusFacts::parse(words)?);
                return Ok(());
            }
            ("scale", _) => None,
            ("log", None) => Some(OwnEndpoint::Connect(Connect::Log)),
            ("proxy", Some((_, Some(kind)))) => Some(OwnEndpoint::Connect(Connect::Proxy(kind))),
            (_, Some((api_version, Some(kind)))) if verbs == "create" => {
                let mut posted = BuiltIn::new(self.catalogue, api_version, kind);
                (posted.plural, posted.namespaced) = (self.plural, self.namespaced);
                posted.verbs = Some(list(verbs).collect());
                posted.set_all(words.by_ref())?;
                Some(OwnEndpoint::Posted(Box::leak(Box::new(posted))))
            }
            (_, Some((_, Some(kind)))) => Some(OwnEndpoint::Connect(Connect::Streams(kind))),
            _ => {
                let part = self.behaviour.parts.iter().find(|(part, _)| *part == name);
                let (_, part) = part.ok_or(format!("the behaviour of {} has no part {name}", self.kind))?;
                Some(OwnEndpoint::Part(part))
            }
        };
        if let Some(word) = words.next() {
            return Err(format!("unknown word {word}"));
        }
        self.scale |= endpoint.is_none();
        let own = endpoint.map(|endpoint| OwnSubresource { name, verbs: list(verbs).collect(), endpoint });
        self.subresources.extend(own);
        Ok(())
    }
}

impl StatusFacts {
    fn parse(words: impl Iterator<Item = &'static str>) -> Result<StatusFacts, String> {
        let mut facts =
            StatusFacts { since: Release::V1_35, is_reset: true, metadata: StatusMetadata::Written, has_tables: true };
        for word in words {
            match word.split_once('=').unwrap_or((word, "")) {
                ("since", since) => facts.since = release(since)?,
                ("settable", "") => facts.is_reset = false,
                ("no-tables", "") => facts.has_tables = false,
                ("metadata", "reset") => facts.metadata = StatusMetadata::Reset,
                ("metadata", "kept") => facts.metadata = StatusMetadata::Kept,
                ("metadata", "unowned") => facts.metadata = StatusMetadata::Unowned,
                _ => return Err(format!("unknown word {word}")),
            }
        }
        Ok(facts)
    }
}

impl MetadataRules {
    /// Applies a word. Returns false if the word is not about metadata.
    fn set(&mut self, name: &str, value: &str) -> bool {
        match (name, value, checks(value)) {
            ("on-create", "last", _) => self.on_create = OnCreate::Last,
            ("on-update", _, Some(checks)) => self.on_update = checks,
            ("on-status", _, Some(checks)) => self.on_status = checks,
            ("any-finalizer", "", _) => self.standard_finalizers = false,
            ("metadata", "included", _) => {
                (self.on_create, self.on_update, self.on_status) = (OnCreate::Included, &[], &[]);
            }
            _ => return false,
        }
        true
    }
}

fn checks(text: &str) -> Option<&'static [OnUpdate]> {
    Some(match text {
        "none" => &[],
        "object" => &[OnUpdate::Object],
        "change" => &[OnUpdate::Change],
        "object,change" => &[OnUpdate::Object, OnUpdate::Change],
        "change,object" => &[OnUpdate::Change, OnUpdate::Object],
        _ => return None,
    })
}

fn release(text: &str) -> Result<Release, String> {
    text.parse().map_err(|_| format!("{text} is not a release that is served"))
}
