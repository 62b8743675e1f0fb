//! The position of a walk over a value: a linked list on the stack, formatted only for errors.

use machinery::FieldPath;

/// A position in a value. The variants differ in how they are printed.
#[derive(Clone, Copy)]
pub(crate) enum Path<'a> {
    Root,
    /// `.name`, without the dot at the root.
    Field(&'a Path<'a>, &'a str),
    /// `.name`, with the dot even at the root: how schema errors print keys of maps.
    Key(&'a Path<'a>, &'a str),
    /// `[name]`.
    Bracket(&'a Path<'a>, &'a str),
    /// `[0]`.
    Index(&'a Path<'a>, usize),
}

impl<'a> Path<'a> {
    /// The field `name`, as field paths print it. A field whose name is empty is printed like an index.
    pub(crate) fn field(parent: &'a Path<'a>, name: &'a str) -> Path<'a> {
        if name.is_empty() { Path::Bracket(parent, name) } else { Path::Field(parent, name) }
    }
}

impl Path<'_> {
    fn write(&self, out: &mut String) {
        match self {
            Path::Root => {}
            Path::Field(parent, name) => {
                parent.write(out);
                if !matches!(parent, Path::Root) {
                    out.push('.');
                }
                out.push_str(name);
            }
            Path::Key(parent, name) => {
                parent.write(out);
                out.push('.');
                out.push_str(name);
            }
            Path::Bracket(parent, name) => {
                parent.write(out);
                out.push('[');
                out.push_str(name);
                out.push(']');
            }
            Path::Index(parent, index) => {
                parent.write(out);
                out.push('[');
                out.push_str(&index.to_string());
                out.push(']');
            }
        }
    }

    pub(crate) fn text(&self) -> String {
        let mut out = String::new();
        self.write(&mut out);
        out
    }

    pub(crate) fn field_path(&self) -> FieldPath {
        FieldPath::new(self.text())
    }
}
