//! Random numbers that are the same for the same seed, and random values.

use machinery::{Map, Text, Value};

/// xorshift64*.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A generator whose seed is a hash of the input.
    pub fn from_input(input: &[u8]) -> Random {
        let mix = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3);
        Random::new(input.iter().fold(0xCBF2_9CE4_8422_2325, mix))
    }

    pub fn next_number(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number less than `n`, which is not 0.
    pub fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.next_number() >> 16).unwrap_or_default() % n.max(1)
    }

    pub fn byte(&mut self) -> u8 {
        self.next_number().to_le_bytes()[7]
    }

    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.byte()).collect()
    }

    pub fn one_of<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }

    /// A value of a few fields and items, with few names, so that names are often equal.
    pub fn value(&mut self, depth: usize, nulls: bool) -> Value {
        match self.below(if depth == 0 { 4 } else { 8 }) {
            0 if nulls => Value::Null,
            0 | 1 => Value::Bool(self.below(2) == 0),
            2 => Value::Int(self.below(4) as i64),
            3 => Value::from(*self.one_of(&["", "a", "b", "~/", "Ä"])),
            4 => (0..self.below(4)).map(|_| self.value(depth - 1, false)).collect(),
            _ => Value::Object(self.members(depth, nulls)),
        }
    }

    pub fn members(&mut self, depth: usize, nulls: bool) -> Map {
        let member = |random: &mut Random| {
            let name = Text::from(*random.one_of(&["a", "b", "c", "x/y", "t~u", "0"]));
            (name, random.value(depth.saturating_sub(1), nulls))
        };
        (0..self.below(5)).map(|_| member(self)).collect()
    }
}
