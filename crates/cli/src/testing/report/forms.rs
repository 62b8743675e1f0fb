//! The forms of a report.

use std::fmt::Write as _;

use machinery::{Value, yaml};
use offline::findings::escapes::xml;

use super::Verdict;

/// A report that is printed.
pub struct Forms<'a> {
    pub status: &'a Value,
    pub verdicts: &'a [Verdict],
}

impl Forms<'_> {
    pub fn agents(&self) -> &[Value] {
        self.status.items_at(&["agents"])
    }

    pub fn text(&self) -> String {
        let seconds = self.status.int_at(&["seconds"]);
        let mut out = match self.agents().len() {
            0 => format!("{seconds} s, no requests\n"),
            1 => format!("{seconds} s, 1 user agent\n"),
            agents => format!("{seconds} s, {agents} user agents\n"),
        };
        if self.status.is_true_at(&["truncated"]) {
            out.push_str("incomplete: there were more clients, or more of what they did, than the server counts\n");
        }
        let agents = self.agents().iter().map(|agent| (agent.str_at(&["userAgent"]), sections(agent)));
        let users = self.users().iter().map(|user| (user.str_at(&["name"]), needs(user)));
        for (name, sections) in agents.chain(users) {
            let _ = writeln!(out, "\n{name}");
            for (title, lines) in sections {
                let _ = writeln!(out, "  {title}");
                for line in lines {
                    let _ = writeln!(out, "    {line}");
                }
            }
        }
        out
    }

    pub fn users(&self) -> &[Value] {
        self.status.items_at(&["users"])
    }

    /// The roles and their bindings as documents of YAML.
    pub fn roles(&self) -> String {
        let mut out = String::new();
        for user in self.users() {
            let agents: Vec<&str> = user.texts_at(&["userAgents"]).collect();
            let who = format!("{} through {}", user.str_at(&["name"]), agents.join(", "));
            for role in user.items_at(&["roles"]) {
                let _ = writeln!(out, "---\n# {}", who.replace(char::is_control, " "));
                out.push_str(&yaml::encode(role));
            }
        }
        out
    }

    pub fn junit(&self) -> String {
        let failures = self.verdicts.iter().filter(|verdict| !verdict.is_met()).count();
        let mut out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"pintle\">\n".to_owned();
        let tests = self.verdicts.len();
        let _ = writeln!(out, "  <testsuite name=\"report\" tests=\"{tests}\" failures=\"{failures}\">");
        for verdict in self.verdicts {
            let _ = write!(out, "    <testcase classname=\"report\" name=\"{}\">", xml(&verdict.check));
            let found: Vec<String> = verdict
                .found
                .iter()
                .map(|found| format!("{}: {} ({})\n", found.agent, found.subject, found.count))
                .collect();
            let found = xml(&found.concat());
            if !verdict.is_met() {
                let _ = write!(out, "<failure message=\"{}\">{found}</failure>", xml(&verdict.failure()));
            } else if !found.is_empty() {
                let _ = write!(out, "<system-out>{found}</system-out>");
            }
            out.push_str("</testcase>\n");
        }
        out.push_str("  </testsuite>\n</testsuites>\n");
        out
    }
}

/// The report of an agent: titles and their lines.
pub fn sections(agent: &Value) -> Vec<(String, Vec<String>)> {
    let mut out = vec![];
    for (check, total) in agent.fields_at(&["counts"]) {
        let total = total.as_int().unwrap_or_default();
        let findings =
            agent.items_at(&["findings"]).iter().filter(|finding| finding.str_at(&["check"]) == check.as_str());
        if total > 0 {
            out.push((format!("{check}: {total}"), findings.map(|finding| counted(finding, "subject")).collect()));
        }
    }
    let requests = agent.items_at(&["requests"]);
    let total: i64 = requests.iter().map(|request| request.int_at(&["count"])).sum();
    out.push((format!("requests: {total}"), requests.iter().map(request).collect()));
    let failures = agent.items_at(&["failures"]);
    if !failures.is_empty() {
        let total: i64 = failures.iter().map(|failure| failure.int_at(&["count"])).sum();
        out.push((format!("failures: {total}"), failures.iter().map(|failure| counted(failure, "reason")).collect()));
    }
    let watches = agent.items_at(&["watches"]);
    if !watches.is_empty() {
        out.push((format!("watches: {}", watches.len()), watches.iter().map(watch).collect()));
    }
    out
}

/// The report of a user: titles and their lines.
pub fn needs(user: &Value) -> Vec<(String, Vec<String>)> {
    let needed = ("needed rules".to_owned(), user.items_at(&["roles"]).iter().flat_map(rules).collect());
    let unused: Vec<String> = user.items_at(&["findings"]).iter().map(|finding| counted(finding, "subject")).collect();
    let unused = (!unused.is_empty()).then(|| (format!("unusedRules: {}", unused.len()), unused));
    std::iter::once(needed).chain(unused).collect()
}

fn counted(value: &Value, field: &str) -> String {
    format!("{:>6} {}", value.int_at(&["count"]), value.str_at(&[field]))
}

fn request(request: &Value) -> String {
    let (verb, resource, failed) =
        (request.str_at(&["verb"]), request.str_at(&["resource"]), request.int_at(&["failed"]));
    let failed = if failed > 0 { format!(", {failed} failed") } else { String::new() };
    format!("{:>6} {verb} {resource}{failed}", request.int_at(&["count"]))
}

fn watch(watch: &Value) -> String {
    let of = |field| watch.int_at(&[field]);
    let (started, restarted, running, events) = (of("started"), of("restarted"), of("running"), of("events"));
    let what = watch.str_at(&["watch"]);
    format!("{what}: {started} started, {restarted} of them again, {running} running, {events} events")
}

/// The rules of a role, in a line each.
fn rules(role: &Value) -> Vec<String> {
    let place = match role.str_at(&["metadata", "namespace"]) {
        "" => "everywhere".to_owned(),
        namespace => format!("in {namespace}"),
    };
    let texts = |rule: &Value, field: &str| rule.texts_at(&[field]).map(str::to_owned).collect::<Vec<String>>();
    let line = |rule: &Value| {
        let group = texts(rule, "apiGroups").concat();
        let group = if group.is_empty() { group } else { format!(" of {group}") };
        format!("{}: {}{group} {place}", texts(rule, "resources").join(", "), texts(rule, "verbs").join(", "))
    };
    role.items_at(&["rules"]).iter().map(line).collect()
}
