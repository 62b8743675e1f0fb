//! A plan as text, as `terraform plan` prints one.

use std::fmt;

use super::{Action, Line, Plan, Refusal};
use crate::limits;

/// How much is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    Summary,
    /// All fields, refused requests, and what differs between two runs.
    Full,
}

impl Line {
    /// The fields that change, as lines.
    pub fn field_lines(&self) -> Vec<String> {
        let shown = |field| match self.is_sensitive(field) {
            true => format!("{}: (sensitive)", field.path),
            false => field.to_string().replace('\n', "\\n"),
        };
        self.fields.iter().map(shown).collect()
    }

    /// The line without the fields.
    pub fn head(&self) -> String {
        let mut head = format!("{} {}", self.action.sign(), self.key);
        if !self.by.is_empty() {
            head.push_str(&format!("  ({})", self.by.join(", ")));
        }
        if !self.reason.is_empty() {
            head.push_str(&format!("  {}", self.reason.replace('\n', " ")));
        }
        head
    }
}

impl fmt::Display for Line {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.head())?;
        match self.field_lines().as_slice() {
            [] => Ok(()),
            [one] if self.reason.is_empty() => write!(out, "  {one}"),
            fields => fields.iter().try_for_each(|field| write!(out, "\n    {field}")),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let message = self.message.replace('\n', " ");
        let (end, more) = match message.char_indices().nth(limits::MESSAGE_SHOWN) {
            Some((end, _)) => (end, "…"),
            None => (message.len(), ""),
        };
        write!(out, "{}: {} {}: {}{more}", self.by, self.verb, self.key, &message[..end])?;
        if self.count > 1 { write!(out, " ({} times)", self.count) } else { Ok(()) }
    }
}

impl Plan {
    /// The last line, such as `Plan: 1 to create, 2 to change, 0 to recreate, 0 to delete.`
    pub fn summary(&self) -> String {
        let counts = Action::ALL.map(|action| format!("{} to {}", self.count(action), action.as_str()));
        let mut summary = match self.is_empty() {
            true => "No changes.".to_owned(),
            false => format!("Plan: {}.", counts.join(", ")),
        };
        match self.refused.iter().map(|refusal| refusal.count).sum() {
            0 => {}
            1 => summary.push_str(" 1 request was refused"),
            refused => summary.push_str(&format!(" {refused} requests were refused")),
        }
        summary
    }

    pub fn text(&self, detail: Detail) -> String {
        let mut text = String::new();
        for line in &self.lines {
            let shown = line.to_string();
            let mut lines = shown.lines();
            let most = if detail == Detail::Full { usize::MAX } else { limits::FIELDS_SHOWN + 1 };
            lines.by_ref().take(most).for_each(|line| text.push_str(&format!("  {line}\n")));
            match lines.count() {
                0 => {}
                more => text.push_str(&format!("      … and {more} more fields (see --details)\n")),
            }
        }
        let hint = if self.refused.is_empty() || detail == Detail::Full { "" } else { " (see --details)" };
        text.push_str(&format!("{}{hint}\n", self.summary()));
        if detail == Detail::Full {
            let refused: Vec<String> = self.refused.iter().map(ToString::to_string).collect();
            for (title, lines) in [
                ("Refused requests", &refused),
                ("Different in two runs", &self.varying),
                ("Webhooks, which are not called", &self.webhooks),
                ("Hosts to which the command has connected or tried to", &self.hosts),
            ] {
                if !lines.is_empty() {
                    text.push_str(&format!("{title}:\n"));
                    lines.iter().for_each(|line| text.push_str(&format!("  {line}\n")));
                }
            }
        }
        text
    }
}
