//! Gates: which held events are released.

use machinery::{Text, Value, json};

use super::choice::mixed;
use super::matching::Matcher;

/// The order in which held events are released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Forward,
    Reversed,
    Shuffled(u64),
}

impl Order {
    /// The index of the event to release next among `count` events, which are in their order; `done` were released
    /// before.
    pub fn next(self, count: usize, done: u64) -> usize {
        match self {
            Order::Forward => 0,
            Order::Reversed => count.saturating_sub(1),
            Order::Shuffled(seed) => {
                usize::try_from(mixed(mixed(seed) ^ done) % count.max(1) as u64).unwrap_or_default()
            }
        }
    }
}

/// A gate that is in effect.
pub struct Gate {
    pub uid: Text,
    pub generation: i64,
    pub matcher: Matcher,
    pub open: bool,
    /// The number of events that the gate lets through in total.
    pub release: u64,
    pub order: Order,
    pub released: u64,
    /// Why the gate holds nothing, if so.
    pub failure: Option<String>,
}

impl Gate {
    /// Reads a Gate that its schema has validated.
    pub fn read(object: &Value) -> Gate {
        let spec = object.get("spec").unwrap_or(&Value::Null);
        let number = |name: &str| spec.get(name).and_then(Value::as_int).and_then(|number| u64::try_from(number).ok());
        let matcher = Matcher::read(spec.get("match").unwrap_or(&Value::Null));
        let failure = matcher.as_ref().err().cloned();
        Gate {
            uid: object.str_at(&["metadata", "uid"]).into(),
            generation: object.at(&["metadata", "generation"]).and_then(Value::as_int).unwrap_or_default(),
            matcher: matcher.unwrap_or_default(),
            open: spec.get("open") == Some(&Value::Bool(true)) || failure.is_some(),
            release: number("release").unwrap_or_default(),
            order: match spec.str_at(&["order"]) {
                "Reversed" => Order::Reversed,
                "Shuffled" => Order::Shuffled(number("seed").unwrap_or_default()),
                _ => Order::Forward,
            },
            released: 0,
            failure,
        }
    }

    /// Applies another specification of the same Gate.
    pub fn change(&mut self, changed: Gate) {
        *self = Gate { released: self.released, ..changed };
    }

    pub fn status(&self, held: usize, watches: usize) -> Value {
        let mut status = json!({"held": held, "released": (self.released), "watches": watches});
        if let Some(why) = &self.failure {
            status.set_at(&["message"], Value::from(why));
        }
        status
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The order in which four events are released.
    fn released(order: Order) -> Vec<usize> {
        let mut held: Vec<usize> = (0..4).collect();
        (0..4).map(|done| held.remove(order.next(held.len(), done))).collect()
    }

    #[test]
    fn events_are_released_in_the_order_of_the_gate() {
        assert_eq!(released(Order::Forward), [0, 1, 2, 3]);
        assert_eq!(released(Order::Reversed), [3, 2, 1, 0]);
        let shuffled = released(Order::Shuffled(1));
        assert_eq!(shuffled, released(Order::Shuffled(1)));
        assert!((0..10).any(|seed| released(Order::Shuffled(seed)) != shuffled));
    }
}
