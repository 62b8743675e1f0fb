//! A report as a page that can be attached to a bug report.

use std::fmt::Write as _;

use machinery::Value;
use offline::findings::escapes::xml;

use super::forms::{Forms, needs, sections};

/// The subject of the report.
pub struct Surroundings {
    /// The workspace; `default` for the API at `/`.
    pub workspace: String,
    /// When the report was made, in the format of object metadata.
    pub time: String,
    /// The Kubernetes version that the server shows.
    pub kubernetes: String,
    /// The objects of kind Fault.
    pub faults: Vec<Value>,
}

const STYLE: &str = "body{font:15px sans-serif;margin:2em;max-width:70em}td,th{text-align:left;vertical-align:top;\
padding:.1em 1em .1em 0}.bad{color:#b00020}li{font-family:monospace;white-space:pre-wrap}pre{background:#f4f4f4;padding:1em;\
overflow:auto}";

impl Forms<'_> {
    pub fn html(&self, around: &Surroundings) -> String {
        let title = format!("Report on workspace {}", xml(&around.workspace));
        let mut out = format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\n\
             <style>{STYLE}</style></head>\n<body><h1>{title}</h1>\n"
        );
        self.facts(&mut out, around);
        faults(&mut out, &around.faults);
        self.checks(&mut out);
        for (index, agent) in self.agents().iter().enumerate() {
            let _ = writeln!(out, "<h2 id=\"client-{index}\">{}</h2>", xml(agent.str_at(&["userAgent"])));
            lists(&mut out, &sections(agent), Some(index));
        }
        for user in self.users() {
            let _ = writeln!(out, "<h2>User {}</h2>", xml(user.str_at(&["name"])));
            lists(&mut out, &needs(user), None);
        }
        let _ =
            writeln!(out, "<h2 id=\"roles\">Roles that would have sufficed</h2>\n<pre>{}</pre>", xml(&self.roles()));
        out.push_str("</body></html>\n");
        out
    }

    fn facts(&self, out: &mut String, around: &Surroundings) {
        let seconds = format!("{} s", self.status.int_at(&["seconds"]));
        let mut facts = vec![
            ("Time", around.time.as_str()),
            ("Counted for", &seconds),
            ("Pintle", env!("CARGO_PKG_VERSION")),
            ("Kubernetes", &around.kubernetes),
        ];
        if self.status.is_true_at(&["truncated"]) {
            facts.push(("Incomplete", "there were more clients, or more of what they did, than the server counts"));
        }
        out.push_str("<table>\n");
        for (name, value) in facts {
            let _ = writeln!(out, "<tr><th>{name}</th><td>{}</td></tr>", xml(value));
        }
        out.push_str("</table>\n");
    }

    /// The checks, with links to the clients in which they have found something.
    fn checks(&self, out: &mut String) {
        out.push_str("<h2>Checks</h2>\n<table>\n<tr><th>Check</th><th>Found</th><th>Expected</th><th>Meaning</th><th>In</th></tr>\n");
        for verdict in self.verdicts {
            let class = if verdict.is_met() { "" } else { " class=\"bad\"" };
            let max = verdict.max.map(|max| format!("at most {max}")).unwrap_or_default();
            let (check, total) = (xml(&verdict.check), verdict.total);
            let meaning =
                server::report_meanings().find(|(name, _)| *name == verdict.check).map_or("", |(_, text)| text);
            let found = |agent: &Value| agent.at(&["counts", &verdict.check]).and_then(Value::as_int) > Some(0);
            let places = self.agents().iter().enumerate().filter(|(_, agent)| found(agent));
            let links: Vec<String> = places
                .map(|(index, agent)| format!("<a href=\"#{check}-{index}\">{}</a>", xml(agent.str_at(&["userAgent"]))))
                .collect();
            let (meaning, links) = (xml(meaning), links.join(", "));
            let _ = writeln!(
                out,
                "<tr{class}><td>{check}</td><td>{total}</td><td>{max}</td><td>{meaning}</td><td>{links}</td></tr>"
            );
        }
        out.push_str("</table>\n");
    }
}

/// Titles with lists. That of a check, such as `noOpWrites: 2`, is where the check links to.
fn lists(out: &mut String, sections: &[(String, Vec<String>)], client: Option<usize>) {
    for (title, lines) in sections {
        let id = match client {
            Some(index) => format!(" id=\"{}-{index}\"", xml(title.split(':').next().unwrap_or_default())),
            None => String::new(),
        };
        let _ = writeln!(out, "<h3{id}>{}</h3>\n<ul>", xml(title));
        for line in lines {
            let _ = writeln!(out, "<li>{}</li>", xml(line.trim_start()));
        }
        out.push_str("</ul>\n");
    }
}

fn faults(out: &mut String, faults: &[Value]) {
    if faults.is_empty() {
        out.push_str("<p>No faults are in force.</p>\n");
        return;
    }
    out.push_str("<h2>Faults</h2>\n<table>\n<tr><th>Fault</th><th>Phase</th><th>Hits</th><th>Spec</th></tr>\n");
    for fault in faults {
        let (name, phase) = (xml(fault.str_at(&["metadata", "name"])), xml(fault.str_at(&["status", "phase"])));
        let (hits, spec) = (fault.int_at(&["status", "hits"]), fault.get("spec").map(Value::to_json));
        let spec = xml(&spec.unwrap_or_default());
        let _ = writeln!(out, "<tr><td>{name}</td><td>{phase}</td><td>{hits}</td><td><code>{spec}</code></td></tr>");
    }
    out.push_str("</table>\n");
}
