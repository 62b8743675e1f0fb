//! Selectors: of a requirement and its opposite, exactly one matches any labels.

use machinery::selector::field::FieldSelector;
use machinery::selector::label::{LabelSelector, Operator};

use super::Target;

pub const TARGET: Target = Target { name: "selectors", seeds: SEEDS, check };

const SEEDS: &[&[u8]] = &[
    b"a=b,c!=d,e==f",
    b"a in (b,c),d notin (e),!f,g",
    b"x.example.com/y in (,z) , w>5,v<-1",
    b"metadata.name=a,metadata.namespace!=b\\,c\\=d",
    b"spec.host = x\\\\",
];

/// The text of a selector.
fn text_of(selector: &LabelSelector) -> String {
    let term = |requirement: &machinery::selector::label::Requirement| {
        let (key, values) = (&requirement.key, requirement.values.join(","));
        match requirement.operator {
            Operator::Exists => key.to_string(),
            Operator::DoesNotExist => format!("!{key}"),
            Operator::In => format!("{key} in ({values})"),
            Operator::NotIn => format!("{key} notin ({values})"),
            Operator::GreaterThan => format!("{key}>{values}"),
            Operator::LessThan => format!("{key}<{values}"),
        }
    };
    selector.clone().into_requirements().iter().map(term).collect::<Vec<_>>().join(",")
}

fn check(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    if let Ok(selector) = FieldSelector::parse(text) {
        assert!(selector.requirements.iter().all(|r| !r.field.is_empty() || !r.value.is_empty()));
    }
    let Ok(selector) = LabelSelector::parse(text) else { return };
    let written = text_of(&selector);
    assert_eq!(LabelSelector::parse(&written).as_ref(), Ok(&selector), "{written}");
    for requirement in selector.into_requirements() {
        let opposite = match requirement.operator {
            Operator::In => Operator::NotIn,
            Operator::NotIn => Operator::In,
            Operator::Exists => Operator::DoesNotExist,
            Operator::DoesNotExist => Operator::Exists,
            Operator::GreaterThan | Operator::LessThan => continue,
        };
        let one = |operator| {
            LabelSelector::of(vec![machinery::selector::label::Requirement { operator, ..requirement.clone() }])
        };
        let own = requirement.values.first().map(machinery::Text::as_str);
        for label in [None, Some(""), Some("b"), own] {
            let selected = |operator| one(operator).matches(|key| label.filter(|_| key == requirement.key));
            assert_ne!(selected(requirement.operator), selected(opposite), "{written}: {label:?}");
        }
    }
}
