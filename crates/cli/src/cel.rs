//! `pintle cel cost`: the estimated cost of the CEL rules of CRDs, its parts, and the bounds that would lower it.

use std::fmt::Write as _;

use ::cel::rules::{Bound, DEFINITION_COST_MAX, EXPRESSION_COST_MAX, Estimate, Explanation, Rules};
use client::{Result, fail};
use machinery::field::FieldErrorKind;
use machinery::{FieldPath, Value, json};

use crate::count::counted;
use crate::flags::Cel;
use crate::values::TextOrJson;
use crate::{cel_eval, limits, logs, manifests};

/// The version of definitions that have another shape.
const BETA: &str = "apiextensions.k8s.io/v1beta1";

/// Prints the report. The error is one line: a file that cannot be read, or the number of expressions that are too expensive
/// or invalid.
pub fn run(task: &Cel) -> Result<()> {
    let (filename, output) = match task {
        Cel::Cost { filename, output } => (filename, output),
        Cel::Eval(task) => return cel_eval::run(task),
    };
    let mut report = Report::default();
    for path in filename {
        manifests::definitions(path)?.iter().for_each(|definition| report.definition(definition));
    }
    let text = match output {
        TextOrJson::Json => std::mem::take(&mut report.rows).into_iter().collect::<Value>().to_json() + "\n",
        TextOrJson::Text => std::mem::take(&mut report.text),
    };
    logs::print(text.as_bytes())?;
    report.verdict()
}

#[derive(Default)]
struct Report {
    text: String,
    /// The same for `-o json`: one object for each expression and problem.
    rows: Vec<Value>,
    /// The definition and the version that are reported.
    of: (String, String),
    expressions: usize,
    expensive: usize,
    schemas: usize,
    problems: usize,
}

impl Report {
    fn line(&mut self, text: std::fmt::Arguments<'_>) {
        let _ = writeln!(self.text, "{text}");
    }

    fn definition(&mut self, definition: &Value) {
        let name = definition.str_at(&["metadata", "name"]).to_owned();
        if definition.str_at(&["apiVersion"]) != BETA {
            self.of = (name.clone(), String::new());
            let unknown = schema::shape::read(definition, schema::definition::ApiVersion::V1.structure()).unknown;
            unknown.iter().for_each(|field| self.problem(&format!("{name}: unknown field {field:?}")));
        }
        let versions = definition.items_at(&["spec", "versions"]);
        for (i, version) in versions.iter().enumerate() {
            let Some(schema) = version.at(&["schema", "openAPIV3Schema"]) else { continue };
            let path = FieldPath::new(format!("spec.versions[{i}].schema.openAPIV3Schema"));
            let explanation = Rules::explain(schema, &path);
            self.line(format_args!("{name}, version {}", version.str_at(&["name"])));
            self.of = (name.clone(), version.str_at(&["name"]).to_owned());
            self.schema(&explanation);
        }
    }

    fn schema(&mut self, explanation: &Explanation) {
        let is_wrong = |estimate: &&Estimate| {
            let mut errors = explanation.errors.iter().filter(|error| error.kind != FieldErrorKind::Forbidden);
            errors.any(|error| error.field == estimate.path.as_str())
        };
        // an expression that does not compile has no cost
        for estimate in explanation.estimates.iter().filter(|estimate| !is_wrong(estimate)) {
            self.estimate(estimate);
        }
        // a rule over its cost limit is an error of type Forbidden, which is part of the estimates already
        let wrong = explanation.errors.iter().filter(|error| error.kind != FieldErrorKind::Forbidden);
        for error in wrong {
            match error.kind {
                FieldErrorKind::Internal => {
                    self.problem(&format!("{}: the schema does not have the types that rules need", error.field));
                }
                _ => self.problem(&error.to_string()),
            }
        }
        let (total, limit) = (explanation.total, DEFINITION_COST_MAX);
        self.schemas += usize::from(total > limit);
        self.line(format_args!("\n  all expressions: {}\n", compared(total, limit)));
    }

    /// Reports a part of a definition that cannot be used.
    fn problem(&mut self, text: &str) {
        self.problems += 1;
        self.line(format_args!("\n  {text}"));
        self.row(json!({"error": text}));
    }

    fn row(&mut self, mut row: Value) {
        row.set_at(&["definition"], Value::from(self.of.0.as_str()));
        row.set_at(&["version"], Value::from(self.of.1.as_str()));
        self.rows.push(row);
    }

    fn estimate(&mut self, estimate: &Estimate) {
        self.expressions += 1;
        let cost = i64::try_from(estimate.cost()).unwrap_or(i64::MAX);
        let limit = i64::try_from(EXPRESSION_COST_MAX).unwrap_or(i64::MAX);
        self.row(json!({
            "path": (estimate.path.as_str()), "expression": (estimate.text.as_str()), "cost": cost, "limit": limit
        }));
        self.expensive += usize::from(estimate.cost() > EXPRESSION_COST_MAX);
        let node = if estimate.node.is_empty() { "(the object)" } else { &estimate.node };
        let suffix = if estimate.path.as_str().ends_with(".messageExpression") { " messageExpression" } else { "" };
        self.line(format_args!("\n  {node}{suffix}: {}", estimate.text.trim().replace('\n', "\n    ")));
        self.line(format_args!("    cost {}", compared(estimate.cost(), EXPRESSION_COST_MAX)));
        if estimate.times != 1 {
            let (each, times) = (grouped(estimate.each), grouped(estimate.times));
            self.line(format_args!("    {each} for each of {times} values of {node}"));
        }
        self.parts(estimate);
        self.bounds(estimate);
    }

    fn parts(&mut self, estimate: &Estimate) {
        let share = |cost: u64| cost as f64 / estimate.each.max(1) as f64;
        let shown = estimate.parts.iter().filter(|part| share(part.cost()) >= 0.01).take(limits::PARTS_SHOWN);
        for part in shown {
            let percent = (share(part.cost()) * 100.0).min(100.0);
            let text = part.text.split_whitespace().collect::<Vec<_>>().join(" ");
            let mut line =
                format!("    {percent:3.0} %  {text} at {}:{}, {}", part.line, part.column, grouped(part.each));
            if part.times != 1 {
                let _ = write!(line, " × {} times", grouped(part.times));
            }
            if let Some(rounds) = part.rounds {
                let _ = write!(line, ", loops {} times", grouped(rounds));
            }
            self.line(format_args!("{line}"));
        }
        let hidden = |part: &&::cel::Part| share(part.cost()) < 0.01;
        for part in estimate.parts.iter().filter(hidden).filter(|part| part.rounds.is_some_and(|rounds| rounds > 1)) {
            let rounds = grouped(part.rounds.unwrap_or(0));
            self.line(format_args!("    loop   {} at {}:{}, {rounds} times", part.text, part.line, part.column));
        }
    }

    fn bounds(&mut self, estimate: &Estimate) {
        for bound in &estimate.bounds {
            if bound.now.is_some() && bound.enough.is_none() && estimate.together.is_none() {
                continue;
            }
            let Bound { node, keyword, now, counted, enough, .. } = bound;
            let node = if node.is_empty() { "(the object)" } else { node };
            let now = now.map_or_else(|| format!("no {keyword}"), |now| format!("{keyword} {}", grouped(now)));
            let counted = grouped(*counted);
            let advice = match enough {
                Some(enough) => format!("; add {keyword}: {enough} or less"),
                None => String::new(),
            };
            self.line(format_args!("    {node} has {now}, counted as {counted}{advice}"));
        }
        match estimate.together {
            Some(number) if estimate.bounds.iter().all(|bound| bound.enough.is_none()) => {
                self.line(format_args!("    add bounds of {number} or less to all of these"));
            }
            Some(number) => self.line(format_args!("    or add bounds of {number} or less to all of these")),
            None if estimate.cost() > EXPRESSION_COST_MAX && estimate.bounds.iter().all(|b| b.enough.is_none()) => {
                self.line(format_args!("    no bound is enough: simplify the expression"));
            }
            None => {}
        }
    }

    fn verdict(&self) -> Result<()> {
        let mut reasons = vec![];
        if self.problems > 0 {
            let problems = counted(self.problems, "problem");
            reasons
                .push(format!("{problems} {} to be corrected first", if self.problems == 1 { "has" } else { "have" }));
        }
        if self.expensive > 0 {
            reasons.push(format!(
                "{} of {} {} too much",
                self.expensive,
                counted(self.expressions, "expression"),
                if self.expensive == 1 { "costs" } else { "cost" }
            ));
        }
        if self.schemas > 0 {
            reasons.push(format!("the expressions of {} cost too much together", counted(self.schemas, "schema")));
        }
        if reasons.is_empty() { Ok(()) } else { fail(reasons.join("; ")) }
    }
}

fn compared(cost: u64, limit: u64) -> String {
    let (shown, allowed) = (grouped(cost), grouped(limit));
    if cost > limit {
        return format!("{shown}, {:.1} times the limit of {allowed}", cost as f64 / limit as f64);
    }
    format!("{shown}, {:.1} % of the limit of {allowed}", 100.0 * cost as f64 / limit as f64)
}

/// A number with its digits grouped by three.
fn grouped(number: u64) -> String {
    if number == u64::MAX {
        return "unlimited".to_owned();
    }
    let digits = number.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(schema: &str) -> (String, Result<(), String>) {
        let text = format!(
            "kind: ConfigMap\n---\nkind: CustomResourceDefinition\nmetadata: {{name: boats.example.com}}\nspec: \
             {{versions: [{{name: v1, schema: {{openAPIV3Schema: {schema}}}}}]}}\n"
        );
        let mut report = Report::default();
        manifests::of_text(&text).unwrap().iter().for_each(|definition| report.definition(definition));
        let verdict = report.verdict().map_err(String::from);
        (report.text, verdict)
    }

    #[test]
    fn reports_cheap_rule_without_error() {
        let (text, verdict) = report("{type: object, x-kubernetes-validations: [{rule: '1 + 1 == 2'}]}");
        assert_eq!(verdict, Ok(()));
        assert_eq!(
            text,
            "boats.example.com, version v1\n\n  (the object): 1 + 1 == 2\n    cost 2, 0.0 % of the limit of 10,000,000\n     \
             50 %  + at 1:3, 1\n     50 %  == at 1:7, 1\n\n  all expressions: 2, 0.0 % of the limit of 100,000,000\n\n"
        );
    }

    #[test]
    fn suggested_bounds_satisfy_the_cost_limit() {
        let schema = |bounds: &str| {
            format!(
                "{{type: object, properties: {{list: {{type: array, {bounds} items: {{type: string, maxLength: 10}}}}}}, \
                 x-kubernetes-validations: [{{rule: 'self.list.all(x, self.list.exists(y, y == x))'}}]}}"
            )
        };
        let (text, verdict) = report(&schema(""));
        assert_eq!(
            verdict,
            Err("1 of 1 expression costs too much; the expressions of 1 schema cost too much together".to_owned())
        );
        let (_, rest) = text.split_once("list has no maxItems, counted as 1,048,575; add maxItems: ").unwrap();
        let enough: u64 = rest.split_once(" or less").unwrap().0.parse().unwrap();
        assert!(text.contains("self.list.exists(y, y == x) at 1:34"), "{text}");
        let (text, verdict) = report(&schema(&format!("maxItems: {enough},")));
        assert_eq!(verdict, Ok(()), "{text}");
        let (text, verdict) = report(&schema(&format!("maxItems: {},", enough + 1)));
        assert!(verdict.is_err(), "{text}");
        assert!(text.contains(&format!("add maxItems: {enough} or less")), "{text}");
    }

    #[test]
    fn cost_includes_enclosing_lists() {
        let (text, verdict) = report(
            "{type: object, properties: {list: {type: array, items: {type: object, properties: {name: {type: string}}, \
             x-kubernetes-validations: [{rule: 'self.name.matches(\"^a+$\")'}]}}}}",
        );
        assert!(verdict.is_err());
        assert!(text.contains("list has no maxItems") && text.contains("list[*].name has no maxLength"), "{text}");
        assert!(text.contains("add bounds of ") || text.contains("; add max"), "{text}");
    }

    #[test]
    fn reports_invalid_fields() {
        let (text, verdict) = report("{type: object, x-kubernetes-validations: [{rule: 'self.nothing'}]}");
        assert_eq!(verdict, Err("1 problem has to be corrected first".to_owned()));
        assert!(text.contains("undefined field 'nothing'") && !text.contains("cost 0"), "{text}");
        for (schema, wanted) in [
            ("{type: strin, x-kubernetes-validations: [{rule: 'true'}]}", "does not have the types that rules need"),
            ("{type: object, properties: {a: {typ: string}}}", "unknown field"),
        ] {
            let (text, verdict) = report(schema);
            assert!(text.contains(wanted) && verdict.is_err(), "{text}");
        }
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!([0, 999, 1000, 1234567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }
}
