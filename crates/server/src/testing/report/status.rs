//! The status of a Report.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::Ordering;

use access::authorization::GrantedRole;
use base::request::User;
use machinery::{Text, Value, json};
use tokio::time::Instant;

use super::checks::Check;
use super::resource_name;
use super::rights::{Right, sufficient, unused};
use super::tally::{AgentTally, Tally, UserTally, WatchKey, WatchTally};

/// The findings of an agent, including those that follow only from its counters.
struct Findings {
    counts: BTreeMap<Check, u64>,
    found: Vec<Value>,
}

impl Findings {
    fn add(&mut self, check: Check, subject: &str, count: u64) {
        *self.counts.entry(check).or_default() += count;
        self.show(check, subject, count);
    }

    fn show(&mut self, check: Check, subject: &str, count: u64) {
        self.found.push(json!({"check": (check.as_str()), "subject": subject, "count": count}));
    }
}

impl Tally {
    /// The status of a Report. `granted` returns the roles of a user.
    pub fn status(&self, now: Instant, granted: impl Fn(&User) -> Vec<GrantedRole>) -> Value {
        let mut totals: BTreeMap<Check, u64> = BTreeMap::new();
        let mut agents = vec![];
        for (name, agent) in &self.agents {
            let (counts, value) = agent.status(name);
            for (check, count) in counts {
                *totals.entry(check).or_default() += count;
            }
            agents.push(value);
        }
        let mut users = vec![];
        for (name, user) in self.users() {
            let (count, value) = user.status(self.rights.get(name).unwrap_or(&user.rights), &granted(user.user));
            *totals.entry(Check::UnusedRules).or_default() += count;
            users.push(value);
        }
        let is_truncated = self.is_truncated || self.writes.as_ref().is_some_and(|writes| writes.is_truncated);
        let mut status = json!({
            "seconds": ((now - self.since).as_secs()),
            "truncated": is_truncated,
            "counts": (counts_value(&totals)),
            "agents": (Value::Array(agents)),
            "users": (Value::Array(users)),
        });
        if let Some(writes) = &self.writes {
            status.set_at(&["writes"], writes.value());
        }
        status
    }

    fn users(&self) -> BTreeMap<&Text, UserReport<'_>> {
        let mut users: BTreeMap<&Text, UserReport<'_>> = BTreeMap::new();
        for (agent, tally) in &self.agents {
            for (name, UserTally { user, rights }) in &tally.users {
                let new = || UserReport { user, agents: vec![], rights: HashSet::new() };
                let report = users.entry(name).or_insert_with(new);
                report.agents.push(agent);
                report.rights.extend(rights.iter().cloned());
            }
        }
        users
    }
}

impl AgentTally {
    fn status(&self, name: &str) -> (BTreeMap<Check, u64>, Value) {
        let mut findings = Findings { counts: self.counts.clone(), found: vec![] };
        for ((check, subject), count) in &self.findings {
            findings.show(*check, subject, *count);
        }
        for (object, count) in &self.pending {
            findings.add(Check::ConflictsNotRetried, object, *count);
        }
        for (key, watch) in &self.watches {
            if watch.restarted > 0 {
                findings.add(Check::WatchRestarts, &key.to_string(), watch.restarted);
            }
            if watch.events.load(Ordering::Acquire) == 0 {
                findings.add(Check::UnusedWatches, &key.to_string(), 1);
            }
        }
        let requests = self.requests.iter().map(|((verb, resource), requests)| {
            json!({"verb": (*verb), "resource": (resource.as_str()), "count": (requests.count),
                "failed": (requests.failed)})
        });
        let reasons =
            self.reasons.iter().map(|(reason, count)| json!({"reason": (reason.as_str()), "count": (*count)}));
        let value = json!({
            "userAgent": name,
            "counts": (counts_value(&findings.counts)),
            "findings": (Value::Array(findings.found)),
            "requests": (requests.collect::<Value>()),
            "failures": (reasons.collect::<Value>()),
            "watches": (self.watches.iter().map(watch_value).collect::<Value>()),
        });
        (findings.counts, value)
    }
}

/// A user, and the clients through which it was seen.
struct UserReport<'a> {
    user: &'a User,
    agents: Vec<&'a Text>,
    /// The requests of the user through these clients.
    rights: HashSet<Right>,
}

impl UserReport<'_> {
    /// `all` are the rights that the user has needed through any client.
    fn status(&self, all: &HashSet<Right>, granted: &[GrantedRole]) -> (u64, Value) {
        let (mut rules, mut findings) = (vec![], Findings { counts: BTreeMap::new(), found: vec![] });
        // roles that every user has are not reported
        for granted in granted.iter().filter(|role| !role.name.starts_with("system:")) {
            let place = if granted.namespace.is_empty() { String::new() } else { format!(" in {}", granted.namespace) };
            for rule in unused(granted, all) {
                let subject = format!("{} {}{place}: {}", granted.kind, granted.name, shown(&rule));
                findings.add(Check::UnusedRules, &subject, 1);
                let (kind, name) = (granted.kind.as_str(), granted.name.as_str());
                let mut value = json!({"kind": kind, "name": name, "rule": (rule)});
                value.put_text(&["namespace"], granted.namespace.as_str());
                rules.push(value);
            }
        }
        let agents: Value = self.agents.iter().map(|agent| Value::from(agent.as_str())).collect();
        let value = json!({
            "name": (self.user.name.as_str()),
            "userAgents": agents,
            "roles": (Value::Array(sufficient(&self.user.name, &self.rights))),
            "unusedRules": (Value::Array(rules)),
            "findings": (Value::Array(findings.found)),
        });
        (findings.counts.values().sum(), value)
    }
}

/// A rule as a line, such as `get, list of deployments.apps`.
fn shown(rule: &Value) -> String {
    let texts = |name: &str| rule.texts_at(&[name]).map(str::to_owned).collect::<Vec<String>>();
    let group = texts("apiGroups").concat();
    let resources: Vec<String> = texts("resources").iter().map(|name| resource_name(&group, name, "")).collect();
    format!("{} of {}", texts("verbs").join(", "), resources.join(", "))
}

fn counts_value(counts: &BTreeMap<Check, u64>) -> Value {
    let mut value = json!({});
    for check in Check::ALL {
        let count = counts.get(&check).copied().unwrap_or_default();
        value.set_at(&[check.as_str()], Value::from(count));
    }
    value
}

fn watch_value((key, watch): (&WatchKey, &WatchTally)) -> Value {
    json!({
        "watch": (key.to_string()),
        "running": (watch.running),
        "started": (watch.started),
        "restarted": (watch.restarted),
        "events": (watch.events.load(Ordering::Acquire)),
    })
}
