//! The tables that kubectl prints of objects.

use machinery::Value;

use super::{CommandInputs, RequestOptions, objects, stored};
use crate::engine::Content;
use crate::error::Error;

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

/// The rows of the objects under the columns of their kinds, as `kubectl get` prints them. With `wide`, also the columns that it
/// prints with `-o wide`. Fails with a one-line message.
pub async fn table(settings: &CommandInputs, wide: bool) -> Result<String, Error> {
    let (engine, objects) = objects(settings).await?;
    let mut out = String::new();
    let mut rows: Vec<Vec<String>> = vec![];
    for (target, object) in &objects {
        stored(&engine, target, object).await?;
        let options = RequestOptions { accept: TABLE.to_owned(), ..RequestOptions::default() };
        let verdict = engine.call(http::Method::GET, &target.path(""), Content::default(), &options).await;
        let table = verdict.object()?;
        let is_shown = |column: &Value| wide || column.int_at(&["priority"]) == 0;
        let columns = table.items_at(&["columnDefinitions"]);
        let header: Vec<String> = columns
            .iter()
            .filter(|column| is_shown(column))
            .map(|column| column.str_at(&["name"]).to_uppercase().replace(' ', "-"))
            .collect();
        if rows.first() != Some(&header) {
            flush(&mut rows, &mut out);
            rows.push(header);
        }
        let cells = table.items_at(&["rows"]).first().map_or(&[][..], |row| row.items_at(&["cells"]));
        let shown = columns.iter().zip(cells).filter(|(column, _)| is_shown(column));
        rows.push(shown.map(|(_, cell)| text(cell)).collect());
    }
    flush(&mut rows, &mut out);
    Ok(out)
}

fn text(cell: &Value) -> String {
    match cell {
        Value::String(text) => text.to_string(),
        Value::Null => "<none>".to_owned(),
        other => other.to_json(),
    }
}

/// Prints rows with aligned columns. Tables of different columns are separated by a blank line.
fn flush(rows: &mut Vec<Vec<String>>, out: &mut String) {
    if rows.is_empty() {
        return;
    }
    if !out.is_empty() {
        out.push('\n');
    }
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |i: usize| rows.iter().filter_map(|row| row.get(i)).map(|cell| cell.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for row in rows.drain(..) {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        out.push_str(cells.collect::<Vec<_>>().join("   ").trim_end());
        out.push('\n');
    }
}
