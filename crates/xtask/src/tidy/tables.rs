//! Reads Markdown tables.
use super::{ARCHITECTURE, Problem};

/// A row and its line number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableRow {
    pub line: usize,
    pub cells: Vec<String>,
}

/// The cells of a line of a table, without backquotes; `None` for other lines.
fn cells(line: &str) -> Option<Vec<String>> {
    let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    Some(inner.split('|').map(|cell| cell.replace('`', "").trim().to_owned()).collect())
}

/// Whether a line is the header of a table with these columns.
pub fn is_header(line: &str, header: &[&str]) -> bool {
    cells(line).is_some_and(|cells| cells == header)
}

/// The rows of the table of ARCHITECTURE.md with this header; a problem if there is no such table.
pub fn find(document: &str, header: &[&str]) -> Result<Vec<TableRow>, Problem> {
    let mut lines = document.lines().enumerate().skip_while(|(_, line)| !is_header(line, header));
    let missing =
        || Problem::new(ARCHITECTURE, 1, format!("there is no table with the header | {} |", header.join(" | ")));
    lines.next().ok_or_else(missing)?;
    let rows = lines.map_while(|(i, line)| Some(TableRow { line: i + 1, cells: cells(line)? }));
    let is_rule = |row: &TableRow| row.cells.iter().all(|cell| cell.chars().all(|c| matches!(c, '-' | ':')));
    Ok(rows.filter(|row| !is_rule(row)).collect())
}

/// The names of a cell: `a, b` or `-` for none.
pub fn names(cell: &str) -> Vec<String> {
    let names = cell.split([',', ' ']).map(str::trim).filter(|name| !matches!(*name, "" | "-" | "—"));
    names.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_is_found_by_its_header() {
        let document = "# T\n\n| a | b |\n| - | - |\n| x | y |\n\n| room | holds |\n| :--- | --- |\n| `http/` | all |\n| `task` | it |\nend\n";
        let rows = find(document, &["room", "holds"]).unwrap();
        let shown: Vec<_> = rows.iter().map(|row| (row.line, row.cells[0].as_str())).collect();
        assert_eq!(shown, [(9, "http/"), (10, "task")]);
        assert!(find(document, &["layer"]).is_err());
        assert_eq!((names("a, b"), names("-"), names("`")), (vec!["a".into(), "b".into()], vec![], vec!["`".into()]));
    }
}
