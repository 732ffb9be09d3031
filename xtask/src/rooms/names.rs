//! What a source names: the leaves of its `use` trees, and the paths in its code.

use super::tokens::{Token, text};

/// A path as the source writes it.
#[derive(Clone, Debug)]
pub(super) struct Mention {
    /// The module around it, from the root of the crate.
    pub(super) within: Vec<String>,
    /// Its segments; `crate`, `self` and `super` are some.
    pub(super) path: Vec<String>,
    pub(super) line: usize,
    /// How it is called here from now on, if it is a `use`.
    pub(super) import: Option<Import>,
}

/// What a `use` makes of a path.
#[derive(Clone, Debug)]
pub(super) struct Import {
    /// None for `*` and `_`.
    pub(super) name: Option<String>,
    /// Whether others may take it from here.
    pub(super) is_public: bool,
}

/// All that the source of a module names, and the modules that it has inline.
pub(super) fn names(all: &[Token], module: &[String]) -> (Vec<Mention>, Vec<Vec<String>>) {
    let mut reader = Reader { all, at: 0, within: module.to_vec(), found: Vec::new() };
    let mut inline = Vec::new();
    // The depths of braces at which inline modules end.
    let (mut depth, mut ends) = (0, Vec::new());
    while reader.at < all.len() {
        match text(all, reader.at) {
            "{" => depth += 1,
            "}" => {
                if ends.last() == Some(&depth) {
                    ends.pop();
                    reader.within.pop();
                }
                depth -= 1;
            }
            "mod" if text(all, reader.at + 2) == "{" => {
                reader.within.push(text(all, reader.at + 1).to_owned());
                inline.push(reader.within.clone());
                depth += 1;
                ends.push(depth);
                reader.at += 2;
            }
            // `use<'a>` is not an import.
            "use" if text(all, reader.at + 1) != "<" => reader.import(),
            _ if all[reader.at].is_name() => reader.path(),
            _ => {}
        }
        reader.at += 1;
    }
    (reader.found, inline)
}

struct Reader<'a> {
    all: &'a [Token],
    at: usize,
    within: Vec<String>,
    found: Vec<Mention>,
}

impl Reader<'_> {
    fn text(&self, at: usize) -> &str {
        text(self.all, at)
    }

    fn before(&self, n: usize) -> &str {
        self.at.checked_sub(n).map_or("", |at| text(self.all, at))
    }

    /// A path in the code; ends on its last word.
    fn path(&mut self) {
        let begin = self.at;
        let continues = self.before(1) == "::";
        let is_visibility = self.before(1) == "in" && self.before(3) == "pub";
        while self.text(self.at + 1) == "::" && self.all.get(self.at + 2).is_some_and(Token::is_name) {
            self.at += 2;
        }
        if self.at > begin && !continues && !is_visibility {
            let path = self.all[begin..=self.at].iter().step_by(2).map(|t| t.text.clone()).collect();
            self.found.push(Mention {
                within: self.within.clone(),
                path,
                line: self.all[begin].line,
                import: None,
            });
        }
    }

    /// A `use`; ends on its semicolon.
    fn import(&mut self) {
        let is_public = matches!(self.before(1), "pub" | ")");
        self.at += 1;
        // `::name` is a library.
        let is_ours = self.text(self.at) != "::";
        let before = self.found.len();
        self.tree(&mut Vec::new(), is_public);
        if !is_ours {
            self.found.truncate(before);
        }
        while self.at < self.all.len() && self.text(self.at) != ";" {
            self.at += 1;
        }
    }

    /// A `use` tree behind a prefix, which is left as it was; ends behind it.
    fn tree(&mut self, prefix: &mut Vec<String>, is_public: bool) {
        let (above, line) = (prefix.len(), self.all.get(self.at).map_or(0, |t| t.line));
        loop {
            match self.text(self.at) {
                "::" => self.at += 1,
                "{" => {
                    self.at += 1;
                    while !matches!(self.text(self.at), "}" | "") {
                        self.tree(prefix, is_public);
                        self.at += usize::from(self.text(self.at) == ",");
                    }
                    self.at += 1;
                    break;
                }
                "*" => {
                    self.at += 1;
                    self.leaf(prefix.clone(), None, line, is_public);
                    break;
                }
                word if self.all.get(self.at).is_some_and(Token::is_name) => {
                    prefix.push(word.to_owned());
                    self.at += 1;
                    if self.text(self.at) != "::" {
                        self.end(prefix.clone(), line, is_public);
                        break;
                    }
                }
                // Not a tree; the next word belongs to other code.
                _ => {
                    self.at += 1;
                    break;
                }
            }
        }
        prefix.truncate(above);
    }

    /// The end of a path in a tree: `name`, `name as other`, `self`.
    fn end(&mut self, mut path: Vec<String>, line: usize, is_public: bool) {
        if path.len() > 1 && path.last().is_some_and(|s| s == "self") {
            path.pop();
        }
        let mut name = path.last().cloned();
        if self.text(self.at) == "as" {
            name = Some(self.text(self.at + 1).to_owned()).filter(|n| n != "_");
            self.at += 2;
        }
        self.leaf(path, name, line, is_public);
    }

    fn leaf(&mut self, path: Vec<String>, name: Option<String>, line: usize, is_public: bool) {
        let import = Some(Import { name, is_public });
        self.found.push(Mention { within: self.within.clone(), path, line, import });
    }
}

#[cfg(test)]
mod tests {
    use super::super::tokens::tokens;
    use super::*;

    fn named(text: &str) -> Vec<String> {
        let (found, _) = names(&tokens(text).0, &["m".into()]);
        let name = |n: &Mention| match &n.import {
            Some(Import { name: Some(name), .. }) => format!(" = {name}"),
            Some(_) => " = *".into(),
            None => String::new(),
        };
        found
            .iter()
            .map(|n| format!("{}:{} {}{}", n.line, n.within.join("::"), n.path.join("::"), name(n)))
            .collect()
    }

    #[test]
    fn trees_are_read_to_their_leaves() {
        assert_eq!(
            named(
                "use crate::{\n    a::b,\n    c::{self, d as e, f::*},\n};\nuse super::super::g as _;\nuse ::h::i;"
            ),
            [
                "2:m crate::a::b = b",
                "3:m crate::c = c",
                "3:m crate::c::d = e",
                "3:m crate::c::f = *",
                "5:m super::super::g = *",
            ]
        );
        assert_eq!(
            named("pub(crate) use a; fn f() -> impl T + use<'a> { b::c() }"),
            ["1:m a = a", "1:m b::c"]
        );
    }

    #[test]
    fn paths_are_read_in_code() {
        assert_eq!(
            named("fn f(x: &crate::a::B) -> <C as super::D>::E { self::g::<crate::h::I>(x.y::<u8>()) }"),
            ["1:m crate::a::B", "1:m super::D", "1:m self::g", "1:m crate::h::I"]
        );
        assert_eq!(named("pub(in crate::a) fn f() { ::std::b::c(); a\n::b }"), ["1:m a::b"]);
    }

    #[test]
    fn inline_modules_are_modules() {
        assert_eq!(
            named("mod a { fn f() { {} } mod b { use super::c; } use super::d; }\nuse super::e;"),
            ["1:m::a::b super::c = c", "1:m::a super::d = d", "2:m super::e = e"]
        );
    }
}
