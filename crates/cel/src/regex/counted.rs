//! Matching of patterns with a large automaton, with bounded work.
//!
//! The deterministic automaton is built while the text is read. With known states, a byte takes a nanosecond; a new state
//! takes a step through all states of the nondeterministic automaton. [`Visits`] bounds texts that need many new states.

use parking_lot::Mutex;
use regex_automata::Input;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson;
use regex_syntax::hir::Hir;

use crate::limits::{AUTOMATON_BYTES_MAX, UNCOUNTED_STATES_MAX};
use crate::work::Visits;

/// Bytes of the states that are known at a time.
const CACHE_BYTES: usize = 2 << 20;
/// Bytes that are read between two counts.
const COUNTED_BYTES: usize = 1 << 14;

pub(super) struct Counted {
    automaton: DFA,
    /// States of the nondeterministic automaton.
    states: u64,
    /// The cache of the last match, for reuse.
    idle: Mutex<Option<Cache>>,
}

impl Counted {
    /// `None` for a pattern so small that its matches need not be counted.
    pub(super) fn new(hir: &Hir) -> Option<Counted> {
        let config = thompson::Config::new()
            .nfa_size_limit(Some(AUTOMATON_BYTES_MAX))
            .which_captures(thompson::WhichCaptures::None);
        let nfa = thompson::Compiler::new().configure(config).build_from_hir(hir).ok()?;
        let states = nfa.states().len();
        if states <= UNCOUNTED_STATES_MAX {
            return None;
        }
        let config = DFA::config().cache_capacity(CACHE_BYTES).skip_cache_capacity_check(true);
        let automaton = DFA::builder().configure(config).build_from_nfa(nfa).ok()?;
        Some(Counted { automaton, states: states as u64, idle: Mutex::default() })
    }

    /// Whether the pattern matches anywhere in the text; also false if the work limit is exceeded.
    pub(super) fn is_match(&self, text: &str) -> bool {
        let idle = self.idle.lock().take();
        let mut cache = idle.unwrap_or_else(|| self.automaton.create_cache());
        let found = self.run(&mut cache, text);
        *self.idle.lock() = Some(cache);
        found.unwrap_or(false)
    }

    fn run(&self, cache: &mut Cache, text: &str) -> Option<bool> {
        let mut visits = Visits::new();
        visits.count(self.states)?;
        let mut state = self.automaton.start_state_forward(cache, &Input::new(text)).ok()?;
        for part in text.as_bytes().chunks(COUNTED_BYTES) {
            visits.count(part.len() as u64)?;
            for byte in part {
                let known = match state.is_tagged() {
                    true => None,
                    false => Some(self.automaton.next_state_untagged(cache, state, *byte)),
                };
                state = match known.filter(|next| !next.is_unknown()) {
                    Some(next) => next,
                    None => {
                        visits.count(self.states)?;
                        self.automaton.next_state(cache, state, *byte).ok()?
                    }
                };
                if state.is_match() || state.is_dead() {
                    return Some(state.is_match());
                }
            }
        }
        Some(self.automaton.next_eoi_state(cache, state).ok()?.is_match())
    }
}
