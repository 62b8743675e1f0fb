//! Buffers for the text of the scalar that is being scanned, and for the white space within it.

use super::reader::Reader;

/// Buffers for the scalar that is being scanned. Their memory is used again for the next one.
#[derive(Default)]
pub struct Buffers {
    pub text: String,
    pub gap: Gap,
}

/// White space within a scalar, folded: a single line break becomes a space, and the first of several is dropped.
#[derive(Default)]
pub struct Gap {
    blanks: String,
    first_break: String,
    more_breaks: String,
    pub has_break: bool,
}

impl Gap {
    pub fn is_empty(&self) -> bool {
        !self.has_break && self.blanks.is_empty()
    }

    /// Consumes a space or a tab, which is dropped after a line break.
    pub fn take_blank(&mut self, reader: &mut Reader<'_>) {
        if self.has_break {
            reader.skip();
        } else {
            reader.take(&mut self.blanks);
        }
    }

    pub fn take_line(&mut self, reader: &mut Reader<'_>) {
        if self.has_break {
            reader.take_line(&mut self.more_breaks);
        } else {
            self.blanks.clear();
            reader.take_line(&mut self.first_break);
            self.has_break = true;
        }
    }

    pub fn write(&mut self, out: &mut String) {
        if !self.has_break {
            out.push_str(&self.blanks);
        } else if !self.first_break.starts_with('\n') {
            out.push_str(&self.first_break);
            out.push_str(&self.more_breaks);
        } else if self.more_breaks.is_empty() {
            out.push(' ');
        } else {
            out.push_str(&self.more_breaks);
        }
        self.clear();
    }

    pub fn clear(&mut self) {
        self.blanks.clear();
        self.first_break.clear();
        self.more_breaks.clear();
        self.has_break = false;
    }
}
