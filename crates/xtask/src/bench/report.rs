//! The table of results, and the file to which it is written.

use std::path::Path;
use std::time::Duration;

use client::{Context as _, Result};

use super::row::{Goal, Row, memory_text, time_text};
use super::{Flags, machine};
use crate::workspace;

const COLUMNS: [&str; 9] = ["measure", "n", "rate", "p50", "p99", "server CPU", "memory", "target", "reached"];

/// The results as a Markdown table, with those of another server in further columns.
pub fn render(ours: &[Row], theirs: &[Row], other: Option<&str>) -> String {
    let mut lines = vec![COLUMNS.iter().map(|column| (*column).to_owned()).collect::<Vec<String>>()];
    if other.is_some() {
        lines[0].extend(["other".to_owned(), "ratio".to_owned()]);
    }
    for row in ours {
        let mut cells = cells(row);
        if other.is_some() {
            let same = theirs.iter().find(|their| their.what == row.what);
            cells.push(same.map_or_else(String::new, headline));
            cells.push(same.map_or_else(String::new, |their| format!("{:.1}×", row.ratio(their))));
        }
        lines.push(cells);
    }
    align(&lines)
}

/// The number of a row that its target refers to.
fn headline(row: &Row) -> String {
    match row.goal {
        Goal::Rate(_) => format!("{:.0}/s", row.samples.rate()),
        Goal::Median(_) => time_text(row.samples.quantile(0.5)),
        Goal::Total(_) | Goal::Beside(..) => time_text(row.samples.wall),
        Goal::Delivered(_) => format!("p99 {}", time_text(row.samples.quantile(0.99))),
        Goal::Memory(_) => row.memory.map(memory_text).unwrap_or_default(),
    }
}

fn cells(row: &Row) -> Vec<String> {
    let samples = &row.samples;
    let timed = samples.len() > 0;
    let time = |share: f64| if timed { time_text(samples.quantile(share)) } else { String::new() };
    let what = if row.note.is_empty() { row.what.clone() } else { format!("{} ({})", row.what, row.note) };
    vec![
        what,
        if timed { samples.len().to_string() } else { String::new() },
        row.rate().map(|rate| format!("{rate:.0}/s")).unwrap_or_default(),
        time(0.5),
        time(0.99),
        row.processor.map(time_text).unwrap_or_default(),
        row.memory.map(memory_text).unwrap_or_default(),
        row.goal.to_string(),
        if row.reached() { "yes" } else { "**no**" }.to_owned(),
    ]
}

/// The lines of a Markdown table with aligned columns.
fn align(lines: &[Vec<String>]) -> String {
    let width = |column: usize| lines.iter().filter_map(|line| line.get(column)).map(|c| c.chars().count()).max();
    let widths: Vec<usize> = (0..lines[0].len()).map(|column| width(column).unwrap_or(0).max(3)).collect();
    let mut out = String::new();
    for (i, line) in lines.iter().enumerate() {
        for (cell, width) in line.iter().zip(&widths) {
            out.push_str(&format!("| {cell}{} ", " ".repeat(width - cell.chars().count())));
        }
        out.push_str("|\n");
        if i == 0 {
            widths.iter().for_each(|width| out.push_str(&format!("| {} ", "-".repeat(*width))));
            out.push_str("|\n");
        }
    }
    out
}

fn today() -> String {
    let mut now = machinery::time::rfc3339(machine::seconds());
    now.truncate("2026-01-01".len());
    now
}

/// The table with a description of the commit, the machine and the clients.
pub fn document(root: &Path, table: &str, sync: Duration, flags: &Flags) -> String {
    let (commit, changed) = workspace::commit(root);
    let protocol = if flags.http2 { "HTTP/2, one connection" } else { "HTTP/1.1, one connection per client" };
    format!(
        "# Bench of {}\n\n- commit: {commit}{}\n- machine: {}; load of the last minute {}\n- append of 4 KB with fdatasync: {}\n- clients: {}, {protocol}, TLS with client certificates, on the same machine\n\n{table}",
        today(),
        match (&flags.binary, changed) {
            (Some(_), _) => " (the binary was given and may be of another)",
            (None, true) => ", with uncommitted changes",
            (None, false) => "",
        },
        machine::describe(),
        machine::load(),
        time_text(sync),
        flags.clients,
    )
}

pub fn write(path: &Path, text: &str) -> Result<()> {
    let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    made.and_then(|()| std::fs::write(path, text)).cannot("write", path)
}

#[cfg(test)]
mod tests {
    use super::super::load::Samples;
    use super::*;

    #[test]
    fn tables_are_aligned_and_compared() {
        let row = |millis| {
            let time = Duration::from_millis(millis);
            Row::new("gets", Samples::new(vec![time], time), Goal::Rate(100.0))
        };
        let text = render(&[row(2)], &[row(4)], Some("https://other"));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(
            lines[2].contains("500/s") && lines[2].contains("yes") && lines[2].ends_with("| 250/s | 2.0×  |"),
            "{text}"
        );
        assert!(lines.iter().all(|line| line.chars().count() == lines[0].chars().count()), "{text}");
    }
}
