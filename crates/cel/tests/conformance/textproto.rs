//! A parser of the text format of protocol buffers, as far as the conformance data uses it.

/// A message: its fields in order, repeated ones several times.
#[derive(Clone, Debug, Default)]
pub struct Message(pub Vec<(String, Value)>);

/// The value of a field.
#[derive(Clone, Debug)]
pub enum Value {
    Text(Vec<u8>),
    /// Numbers and the names of constants.
    Word(String),
    Message(Message),
}

static EMPTY: Message = Message(vec![]);

impl Message {
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(field, _)| field == name).map(|(_, value)| value)
    }

    pub fn all<'m>(&'m self, name: &'m str) -> impl Iterator<Item = &'m Message> {
        self.0.iter().filter(move |(field, _)| field == name).map(|(_, value)| value.message())
    }

    pub fn text(&self, name: &str) -> String {
        self.get(name).map(Value::text).unwrap_or_default()
    }

    pub fn message(&self, name: &str) -> Option<&Message> {
        self.get(name).map(Value::message)
    }

    pub fn flag(&self, name: &str) -> bool {
        self.text(name) == "true"
    }
}

impl Value {
    pub fn text(&self) -> String {
        match self {
            Value::Text(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Value::Word(word) => word.clone(),
            Value::Message(_) => String::new(),
        }
    }

    pub fn message(&self) -> &Message {
        if let Value::Message(message) = self { message } else { &EMPTY }
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// Parses a message. Panics on invalid text, since the data is pinned.
pub fn parse(text: &str) -> Message {
    let mut reader = Reader { bytes: text.as_bytes(), at: 0 };
    let message = reader.fields();
    assert!(reader.peek().is_none(), "unexpected text at byte {}", reader.at);
    message
}

impl Reader<'_> {
    /// The next byte that is neither white space nor part of a comment.
    fn peek(&mut self) -> Option<u8> {
        loop {
            match *self.bytes.get(self.at)? {
                b'#' => self.at += self.bytes[self.at..].iter().take_while(|b| **b != b'\n').count(),
                b' ' | b'\t' | b'\r' | b'\n' | b',' | b';' => self.at += 1,
                other => return Some(other),
            }
        }
    }

    fn fields(&mut self) -> Message {
        let mut fields = vec![];
        while let Some(next) = self.peek() {
            if next == b'}' {
                break;
            }
            let name = if next == b'[' { self.extension() } else { self.word() };
            if self.peek() == Some(b':') {
                self.at += 1;
            }
            if self.peek() == Some(b'[') {
                self.at += 1;
                while self.peek() != Some(b']') {
                    let value = self.value();
                    fields.push((name.clone(), value));
                }
                self.at += 1;
            } else {
                let value = self.value();
                fields.push((name, value));
            }
        }
        Message(fields)
    }

    fn extension(&mut self) -> String {
        let len = self.bytes[self.at..].iter().take_while(|b| **b != b']').count() + 1;
        let name = String::from_utf8_lossy(&self.bytes[self.at + 1..self.at + len - 1]).into_owned();
        self.at += len;
        name
    }

    fn word(&mut self) -> String {
        let part = |b: &&u8| b.is_ascii_alphanumeric() || matches!(**b, b'_' | b'.' | b'-' | b'+');
        let len = self.bytes[self.at..].iter().take_while(part).count();
        assert!(len > 0, "no word at byte {}", self.at);
        let word = String::from_utf8_lossy(&self.bytes[self.at..self.at + len]).into_owned();
        self.at += len;
        word
    }

    fn value(&mut self) -> Value {
        match self.peek() {
            Some(b'{') => {
                self.at += 1;
                let message = self.fields();
                assert_eq!(self.peek(), Some(b'}'), "unclosed message at byte {}", self.at);
                self.at += 1;
                Value::Message(message)
            }
            Some(b'"' | b'\'') => {
                let mut bytes = vec![];
                while let Some(quote @ (b'"' | b'\'')) = self.peek() {
                    self.string(quote, &mut bytes);
                }
                Value::Text(bytes)
            }
            _ => Value::Word(self.word()),
        }
    }

    fn string(&mut self, quote: u8, out: &mut Vec<u8>) {
        self.at += 1;
        while self.bytes[self.at] != quote {
            let byte = self.bytes[self.at];
            self.at += 1;
            if byte == b'\\' { self.escape(out) } else { out.push(byte) }
        }
        self.at += 1;
    }

    fn escape(&mut self, out: &mut Vec<u8>) {
        let kind = self.bytes[self.at];
        self.at += 1;
        match kind {
            b'a' => out.push(7),
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'v' => out.push(11),
            b'x' | b'X' => {
                let code = self.digits(16, 2);
                out.push(code as u8);
            }
            b'u' | b'U' => {
                let code = self.digits(16, if kind == b'u' { 4 } else { 8 });
                let c = char::from_u32(code).expect("a code point");
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
            b'0'..=b'7' => {
                self.at -= 1;
                let code = self.digits(8, 3);
                out.push(code as u8);
            }
            other => out.push(other),
        }
    }

    /// A number of at most `most` digits.
    fn digits(&mut self, radix: u32, most: usize) -> u32 {
        let mut code = 0;
        for _ in 0..most {
            let Some(digit) = char::from(self.bytes[self.at]).to_digit(radix) else { break };
            code = code * radix + digit;
            self.at += 1;
        }
        code
    }
}
