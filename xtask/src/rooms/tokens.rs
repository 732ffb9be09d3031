//! The words of a Rust source that count: without comments, literals and what is compiled for tests only.

use std::collections::BTreeSet;
use std::iter::Peekable;
use std::str::Chars;

/// A name, `::`, or one other character.
#[derive(Clone, Debug)]
pub(super) struct Token {
    /// From 1.
    pub(super) line: usize,
    pub(super) text: String,
}

impl Token {
    /// Whether it is a name or a keyword.
    pub(super) fn is_name(&self) -> bool {
        self.text.starts_with(|c: char| c.is_alphabetic() || c == '_')
    }
}

/// All words of a text, and the names of the modules that it declares for tests (`#[cfg(test)] mod naive;`).
pub(super) fn tokens(text: &str) -> (Vec<Token>, BTreeSet<String>) {
    without_tests(Lexer { chars: text.chars().peekable(), line: 1, found: Vec::new() }.all())
}

struct Lexer<'a> {
    chars: Peekable<Chars<'a>>,
    line: usize,
    found: Vec<Token>,
}

impl Lexer<'_> {
    fn all(mut self) -> Vec<Token> {
        while let Some(c) = self.next() {
            match c {
                '/' if self.chars.peek() == Some(&'/') => while self.next().is_some_and(|c| c != '\n') {},
                '/' if self.chars.peek() == Some(&'*') => self.block_comment(),
                '"' => self.string(),
                '\'' => self.quote(),
                ':' if self.chars.peek() == Some(&':') => {
                    self.next();
                    self.push("::".into());
                }
                c if c.is_alphanumeric() || c == '_' => self.name(c),
                c if c.is_whitespace() => {}
                c => self.push(c.into()),
            }
        }
        self.found
    }

    fn next(&mut self) -> Option<char> {
        let c = self.chars.next();
        self.line += usize::from(c == Some('\n'));
        c
    }

    fn push(&mut self, text: String) {
        self.found.push(Token { line: self.line, text });
    }

    /// Block comments nest.
    fn block_comment(&mut self) {
        self.next();
        let mut depth = 1;
        while depth > 0 {
            match (self.next(), self.chars.peek()) {
                (Some('/'), Some('*')) => depth += 1,
                (Some('*'), Some('/')) => depth -= 1,
                (Some(_), _) => continue,
                (None, _) => return,
            }
            self.next();
        }
    }

    fn string(&mut self) {
        while let Some(c) = self.next() {
            match c {
                '\\' => _ = self.next(),
                '"' => return,
                _ => {}
            }
        }
    }

    /// A raw string, from the `#` or `"` behind its prefix.
    fn raw_string(&mut self) {
        let mut hashes = 0;
        while self.chars.next_if_eq(&'#').is_some() {
            hashes += 1;
        }
        self.next();
        while let Some(c) = self.next() {
            let mut closing = 0;
            while c == '"' && closing < hashes && self.chars.next_if_eq(&'#').is_some() {
                closing += 1;
            }
            if c == '"' && closing == hashes {
                return;
            }
        }
    }

    /// A character, or a lifetime, which is left out as well.
    fn quote(&mut self) {
        match self.next() {
            Some('\\') => {
                self.next();
                while self.next().is_some_and(|c| c != '\'') {}
            }
            Some(_) if self.chars.next_if_eq(&'\'').is_some() => {}
            _ => while self.chars.next_if(|c| c.is_alphanumeric() || *c == '_').is_some() {},
        }
    }

    /// A name, a number, or the prefix of a literal.
    fn name(&mut self, first: char) {
        let mut name = String::from(first);
        while let Some(c) = self.chars.next_if(|c| c.is_alphanumeric() || *c == '_') {
            name.push(c);
        }
        match (name.as_str(), self.chars.peek().copied()) {
            ("b" | "c", Some('"')) => {
                self.next();
                self.string();
            }
            ("b", Some('\'')) => {
                self.next();
                self.quote();
            }
            ("r" | "br" | "cr", Some('"')) => self.raw_string(),
            ("r" | "br" | "cr", Some('#')) if !self.is_raw_name() => self.raw_string(),
            ("r", Some('#')) => _ = self.next(),
            _ => self.push(name),
        }
    }

    /// Whether `#` begins a raw name (`r#type`) and no raw string.
    fn is_raw_name(&self) -> bool {
        self.chars.clone().nth(1).is_some_and(|c| c.is_alphabetic() || c == '_')
    }
}

/// Leaves out what stands behind `#[cfg(test)]`, `#[cfg(all(test, ..))]` and `#[test]`.
fn without_tests(all: Vec<Token>) -> (Vec<Token>, BTreeSet<String>) {
    let (mut kept, mut modules) = (Vec::new(), BTreeSet::new());
    let mut at = 0;
    while at < all.len() {
        let inner = text(&all, at + 1) == "!";
        let bracket = at + 1 + usize::from(inner);
        if text(&all, at) != "#" || text(&all, bracket) != "[" {
            kept.push(all[at].clone());
            at += 1;
            continue;
        }
        let behind = closed(&all, bracket);
        if !is_for_tests(&all[bracket + 1..behind]) {
            kept.extend_from_slice(&all[at..behind]);
            at = behind;
        } else if inner {
            return (Vec::new(), modules);
        } else {
            at = behind_item(&all, behind, &mut modules);
        }
    }
    (kept, modules)
}

/// Whether the inside of an attribute says `test`, `cfg(test)` or `cfg(all(.., test, ..))`.
fn is_for_tests(inside: &[Token]) -> bool {
    let texts: Vec<&str> = inside.iter().map(|t| t.text.as_str()).collect();
    match texts.as_slice() {
        ["test", "]"] | ["cfg", "(", "test", ..] => true,
        ["cfg", "(", "all", "(", rest @ ..] => {
            let mut depth = 0;
            rest.iter().any(|t| {
                depth += i32::from(*t == "(") - i32::from(*t == ")");
                depth == 0 && *t == "test"
            })
        }
        _ => false,
    }
}

/// The place behind the item (or field, or arm) that begins here, its further attributes included.
fn behind_item(all: &[Token], mut at: usize, modules: &mut BTreeSet<String>) -> usize {
    while text(all, at) == "#" && text(all, at + 1) == "[" {
        at = closed(all, at + 1);
    }
    if text(all, at) == "pub" {
        at = if text(all, at + 1) == "(" { closed(all, at + 1) } else { at + 1 };
    }
    if text(all, at) == "mod" && text(all, at + 2) == ";" {
        modules.insert(text(all, at + 1).to_owned());
    }
    const ITEMS: &[&str] = &[
        "async", "const", "enum", "extern", "fn", "impl", "mod", "static", "struct", "trait", "type",
        "unsafe",
    ];
    let ends_at_semicolon = ["use", "let"].contains(&text(all, at));
    let is_item = ends_at_semicolon || ITEMS.contains(&text(all, at));
    while at < all.len() {
        match text(all, at) {
            ";" => return at + 1,
            "," if !is_item => return at + 1,
            "}" | ")" | "]" => return at,
            "{" if !ends_at_semicolon => return closed(all, at),
            "{" | "(" | "[" => at = closed(all, at),
            _ => at += 1,
        }
    }
    at
}

/// The place behind the bracket that closes the one here.
fn closed(all: &[Token], open: usize) -> usize {
    let mut depth = 0;
    for (at, token) in all.iter().enumerate().skip(open) {
        match token.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    all.len()
}

/// The word there, empty beyond the end.
pub(super) fn text(all: &[Token], at: usize) -> &str {
    all.get(at).map_or("", |t| t.text.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> String {
        tokens(text).0.into_iter().map(|t| t.text).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn comments_and_literals_are_left_out() {
        assert_eq!(words("a // crate::b\n/* c /* d */ e */ f"), "a f");
        assert_eq!(
            words(r##"x "crate::\"y" b'\'' r#"z " y"# 'w' '\u{1F600}' &'a str b"q" r"\" end"##),
            "x & str end"
        );
        assert_eq!(words("r#type::a::<'static, u8> 1..=2"), "type :: a :: < , u8 > 1 . . = 2");
        let lines: Vec<usize> = tokens("a\n\"\n\"\nb /*\n*/ c").0.iter().map(|t| t.line).collect();
        assert_eq!(lines, [1, 4, 5]);
    }

    #[test]
    fn what_is_for_tests_is_left_out() {
        assert_eq!(words("#[cfg(test)]\nmod tests { use crate::a; }\nfn b() {}"), "fn b ( ) { }");
        assert_eq!(words("#[test]\n#[ignore]\nfn a<A, B>() -> C where A: D { x } b"), "b");
        assert_eq!(words("#[cfg(all(unix, test))] use crate::{a, b}; c"), "c");
        assert_eq!(words("struct S { #[cfg(test)] pub a: A<B, C>, b: B }"), "struct S { C > , b : B }");
        assert_eq!(words("f(#[cfg(test)] a)"), "f ( )");
        assert_eq!(words("#[cfg(not(test))] a #[cfg(all(not(test), unix))] b").matches("test").count(), 2);
        assert_eq!(words("#![cfg(test)] use crate::a;"), "");
        let (_, modules) = tokens("#[cfg(test)]\n#[path = \"x.rs\"]\npub(crate) mod naive;\nmod real;");
        assert_eq!(modules.into_iter().collect::<Vec<_>>(), ["naive"]);
    }
}
