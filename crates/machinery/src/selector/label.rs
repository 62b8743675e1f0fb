//! Label selectors: `k`, `!k`, `k=v`, `k!=v`, `k in (a,b)`, `k notin (a)`, `k>1`, `k<1`, joined by commas.

use crate::value::{Value, quote};
use crate::{Text, names};

/// The number of requirements up to which each is looked up among the labels of an object.
const FEW: usize = 4;

/// How a requirement compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// The label exists.
    Exists,
    /// The label does not exist.
    DoesNotExist,
    /// The value of the label is one of the values.
    In,
    /// The label does not exist, or its value is none of the values.
    NotIn,
    /// The value of the label is an integer greater than the value.
    GreaterThan,
    /// The value of the label is an integer less than the value.
    LessThan,
}

/// One requirement of a selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// The key of the label.
    pub key: Text,
    /// The comparison.
    pub operator: Operator,
    /// The values, sorted; empty for `Exists` and `DoesNotExist`.
    pub values: Vec<Text>,
}

/// A conjunction of requirements. An empty selector selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector {
    /// The requirements, all of which must be met, sorted by key.
    requirements: Vec<Requirement>,
    /// How many of the requirements need a label to exist.
    positive: usize,
}

impl LabelSelector {
    /// Whether the selector selects everything.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Builds a selector from requirements in any order. Their values must be sorted.
    #[must_use]
    pub fn of(mut requirements: Vec<Requirement>) -> LabelSelector {
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        let positive = requirements.iter().filter(|required| required.needs_label()).count();
        LabelSelector { requirements, positive }
    }

    /// The requirements, sorted by key.
    #[must_use]
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// The requirements, sorted by key.
    #[must_use]
    pub fn into_requirements(self) -> Vec<Requirement> {
        self.requirements
    }

    /// Whether an object with these labels is selected. The time depends on the number of labels, not of requirements:
    /// requirements whose label is missing are only counted.
    pub fn selects(&self, labels: &[(Text, Text)]) -> bool {
        // a few requirements are found faster by looking at all labels for each
        if self.requirements.len() <= FEW {
            return self.matches(|key| labels.iter().find(|(known, _)| *known == key).map(|(_, value)| value.as_str()));
        }
        let mut met = 0;
        for (key, value) in labels {
            let first = self.requirements.partition_point(|required| required.key < *key);
            for required in self.requirements[first..].iter().take_while(|required| required.key == *key) {
                if !required.matches(Some(value)) {
                    return false;
                }
                met += usize::from(required.needs_label());
            }
        }
        met == self.positive
    }

    /// As [`LabelSelector::selects`], with a function that looks labels up by key.
    pub fn matches<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.requirements.iter().all(|r| r.matches(label(&r.key)))
    }

    /// Parses the text of a `labelSelector` parameter. The error is the message of the 400.
    pub fn parse(text: &str) -> Result<LabelSelector, String> {
        let mut parser = SelectorParser { tokens: tokens(text), at: 0 };
        Ok(LabelSelector::of(parser.selector()?))
    }

    /// Reads a `metav1.LabelSelector` object (`matchLabels`, `matchExpressions`). `None` if it is malformed.
    pub fn from_value(value: &Value) -> Option<LabelSelector> {
        let mut requirements = vec![];
        if let Some(labels) = value.get("matchLabels").and_then(Value::as_object) {
            for (key, v) in labels.iter() {
                let values = vec![Text::from(v.as_str()?)];
                requirements.push(Requirement { key: key.clone(), operator: Operator::In, values });
            }
        }
        for expression in value.items_at(&["matchExpressions"]) {
            let operator = match expression.str_at(&["operator"]) {
                "In" => Operator::In,
                "NotIn" => Operator::NotIn,
                "Exists" => Operator::Exists,
                "DoesNotExist" => Operator::DoesNotExist,
                _ => return None,
            };
            let values = expression.items_at(&["values"]);
            let mut values: Vec<Text> = values.iter().filter_map(Value::as_str).map(Text::from).collect();
            values.sort();
            requirements.push(Requirement { key: expression.str_at(&["key"]).into(), operator, values });
        }
        Some(LabelSelector::of(requirements))
    }
}

impl Requirement {
    fn needs_label(&self) -> bool {
        !matches!(self.operator, Operator::DoesNotExist | Operator::NotIn)
    }

    fn has(&self, value: &str) -> bool {
        self.values.binary_search_by(|known| known.as_str().cmp(value)).is_ok()
    }

    fn matches(&self, value: Option<&str>) -> bool {
        let number = |text: &str| text.parse::<i64>().ok();
        match (self.operator, value) {
            (Operator::Exists, value) => value.is_some(),
            (Operator::DoesNotExist, value) => value.is_none(),
            (Operator::In, value) => value.is_some_and(|value| self.has(value)),
            (Operator::NotIn, value) => value.is_none_or(|value| !self.has(value)),
            (Operator::GreaterThan | Operator::LessThan, None) => false,
            (operator, Some(v)) => match (number(v), self.values.first().and_then(|x| number(x))) {
                (Some(v), Some(x)) => {
                    (operator == Operator::GreaterThan && v > x) || (operator == Operator::LessThan && v < x)
                }
                _ => false,
            },
        }
    }

    fn new(key: &str, operator: Operator, values: Vec<Text>) -> Result<Requirement, String> {
        let mut errors = vec![];
        let mut report = |path: String, value: &str, why: &str| {
            errors.push(format!("{path}: Invalid value: {}: {why}", quote(value)));
        };
        let messages = names::qualified_name(key);
        if !messages.is_empty() {
            report("<nil>".to_owned(), key, &messages.join("; "));
        }
        if matches!(operator, Operator::GreaterThan | Operator::LessThan) {
            for (i, value) in values.iter().enumerate().filter(|(_, value)| value.parse::<i64>().is_err()) {
                report(format!("values[{i}]"), value, "for 'Gt', 'Lt' operators, the value must be an integer");
            }
        }
        for (i, value) in values.iter().enumerate() {
            let messages = names::label_value(value);
            if !messages.is_empty() {
                report(format!("values[{i}][{key}]"), value, &messages.join("; "));
            }
        }
        match errors.as_slice() {
            [] => Ok(Requirement { key: key.into(), operator, values }),
            [one] => Err(format!("unable to parse requirement: {one}")),
            several => Err(format!("unable to parse requirement: [{}]", several.join(", "))),
        }
    }
}

fn tokens(text: &str) -> Vec<SelectorToken<'_>> {
    const SPECIAL: &[u8] = b"=!(),><";
    let bytes = text.as_bytes();
    let space = |b: u8| matches!(b, b' ' | b'\t' | b'\r' | b'\n');
    let mut out = vec![];
    let mut i = 0;
    while i < bytes.len() {
        let b = bytes[i];
        if space(b) {
            i += 1;
            continue;
        }
        let start = i;
        if SPECIAL.contains(&b) {
            let two = bytes.get(i..i + 2).unwrap_or_default();
            i += if two == b"==" || two == b"!=" { 2 } else { 1 };
            out.push(SelectorToken { text: &text[start..i], word: false });
        } else {
            while i < bytes.len() && !space(bytes[i]) && !SPECIAL.contains(&bytes[i]) {
                i += 1;
            }
            out.push(SelectorToken { text: &text[start..i], word: true });
        }
    }
    out
}

#[derive(Clone, Copy, Debug)]
struct SelectorToken<'a> {
    text: &'a str,
    word: bool,
}

struct SelectorParser<'a> {
    tokens: Vec<SelectorToken<'a>>,
    at: usize,
}

impl<'a> SelectorParser<'a> {
    /// The next token; at the end, an empty text.
    fn peek(&self) -> SelectorToken<'a> {
        self.tokens.get(self.at).copied().unwrap_or(SelectorToken { text: "", word: false })
    }

    fn next(&mut self) -> SelectorToken<'a> {
        let token = self.peek();
        self.at += 1;
        token
    }

    fn selector(&mut self) -> Result<Vec<Requirement>, String> {
        let mut requirements = vec![];
        loop {
            let token = self.peek();
            if token.word || token.text == "!" {
                requirements.push(self.requirement()?);
                let token = self.next();
                match token.text {
                    "" => return Ok(requirements),
                    "," => {
                        let after = self.peek();
                        if !after.word && after.text != "!" {
                            return Err(format!("found '{}', expected: identifier after ','", after.text));
                        }
                    }
                    other => return Err(format!("found '{other}', expected: ',' or 'end of string'")),
                }
            } else if token.text.is_empty() {
                return Ok(requirements);
            } else {
                return Err(format!("found '{}', expected: !, identifier, or 'end of string'", token.text));
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let absent = self.peek().text == "!";
        if absent {
            self.at += 1;
        }
        let key = self.next();
        if !key.word {
            return Err(format!("unable to parse requirement: found '{}', expected: identifier", key.text));
        }
        let messages = names::qualified_name(key.text);
        if !messages.is_empty() {
            return Requirement::new(key.text, Operator::Exists, vec![]);
        }
        let after = self.peek();
        if absent {
            return Requirement::new(key.text, Operator::DoesNotExist, vec![]);
        }
        if after.text.is_empty() || after.text == "," {
            return Requirement::new(key.text, Operator::Exists, vec![]);
        }
        self.at += 1;
        let operator = match after.text {
            "=" | "==" | "in" => Operator::In,
            "!=" | "notin" => Operator::NotIn,
            ">" => Operator::GreaterThan,
            "<" => Operator::LessThan,
            other => {
                let expected = "in, notin, =, ==, !=, gt, lt";
                return Err(format!("unable to parse requirement: found '{other}', expected: {expected}"));
            }
        };
        let mut values = if after.word { self.set()? } else { vec![self.exact()?] };
        // a set in kube-apiserver: errors have the index in its sorted list
        values.sort();
        values.dedup();
        Requirement::new(key.text, operator, values)
    }

    fn exact(&mut self) -> Result<Text, String> {
        let token = self.peek();
        if token.text.is_empty() || token.text == "," {
            return Ok(Text::default());
        }
        self.at += 1;
        if token.word {
            return Ok(token.text.into());
        }
        Err(format!("unable to parse requirement: found '{}', expected: identifier", token.text))
    }

    fn set(&mut self) -> Result<Vec<Text>, String> {
        let open = self.next();
        if open.text != "(" {
            return Err(format!("unable to parse requirement: found '{}' expected: '('", open.text));
        }
        let mut values = vec![];
        loop {
            let token = self.next();
            let after = match token.text {
                value if token.word => {
                    values.push(Text::from(value));
                    self.next().text
                }
                "," => {
                    values.push(Text::default());
                    ","
                }
                ")" if values.is_empty() => return Ok(vec![Text::default()]),
                other => {
                    let expected = "',', ')' or identifier";
                    return Err(format!("unable to parse requirement: found '{other}', expected: {expected}"));
                }
            };
            match after {
                // a comma before the end adds an empty value
                "," if self.peek().text == ")" => {
                    self.at += 1;
                    values.push(Text::default());
                    return Ok(values);
                }
                "," => {}
                ")" => return Ok(values),
                other => {
                    return Err(format!("unable to parse requirement: found '{other}', expected: ',' or ')'"));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selects(selector: &str, labels: &[(&str, &str)]) -> bool {
        let parsed = LabelSelector::parse(selector).unwrap();
        let matched = parsed.matches(|key| labels.iter().find(|(k, _)| *k == key).map(|(_, v)| *v));
        let owned: Vec<(Text, Text)> = labels.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
        assert_eq!(parsed.selects(&owned), matched, "{selector}");
        matched
    }

    #[test]
    fn selection() {
        let labels = [("a", "1"), ("b", "x")];
        for selector in [
            "", "a", "!c", "a=1", "a==1,b", "a!=2", "c!=2", "a in (1, 2)", "c notin (1)", "a>0", "a<5", " b = x , a ",
            "a>0,a<5,a!=3", "a,b,a=1,b=x,!c,d!=1",
        ] {
            assert!(selects(selector, &labels), "{selector}");
        }
        for selector in [
            "c", "!a", "a=2", "b>1", "c<1", "a notin (1)", "c in ()", "a=", "a=1,c", "a>0,a<1", "!b,a",
            "a,b,a=1,b=x,!c,d", "a,b,a=1,b!=x,!c",
        ] {
            assert!(!selects(selector, &labels), "{selector}");
        }
    }

    #[test]
    fn errors() {
        let cases = [
            ("color=blue,", "found '', expected: identifier after ','"),
            (",color=blue", "found ',', expected: !, identifier, or 'end of string'"),
            ("color=blue size=10", "found 'size', expected: ',' or 'end of string'"),
            ("color in blue", "unable to parse requirement: found 'blue' expected: '('"),
            ("color in (blue", "unable to parse requirement: found '', expected: ',' or ')'"),
            ("color===blue", "unable to parse requirement: found '=', expected: identifier"),
            ("!", "unable to parse requirement: found '', expected: identifier"),
            ("!color=blue", "found '=', expected: ',' or 'end of string'"),
            ("color is blue", "unable to parse requirement: found 'is', expected: in, notin, =, ==, !=, gt, lt"),
            (
                "color<",
                "unable to parse requirement: values[0]: Invalid value: \"\": for 'Gt', 'Lt' operators, the value must be an integer",
            ),
            (
                "color>-x-",
                "unable to parse requirement: [values[0]: Invalid value: \"-x-\": for 'Gt', 'Lt' operators, the value must be an integer, values[0][color]: Invalid value: \"-x-\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')]",
            ),
            (
                "color in (b,-a,b,-a,)",
                "unable to parse requirement: values[1][color]: Invalid value: \"-a\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
            ),
            ("/x=y", "unable to parse requirement: <nil>: Invalid value: \"/x\": prefix part must be non-empty"),
        ];
        for (selector, want) in cases {
            assert_eq!(LabelSelector::parse(selector).unwrap_err(), want, "{selector}");
        }
    }
}
