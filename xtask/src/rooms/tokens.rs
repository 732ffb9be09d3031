//! The words of a Rust source that count: without comments, literals and what is compiled for tests only.

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};
use std::collections::BTreeSet;

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

/// The words of a text, and the names of the modules that it declares for tests (`#[cfg(test)] mod naive;`). A text
/// that cannot be divided into tokens has none.
pub(super) fn tokens(text: &str) -> (Vec<Token>, BTreeSet<String>) {
    let mut all = Vec::new();
    flatten(text.parse().unwrap_or_default(), &mut all);
    without_tests(all)
}

/// Appends a stream's words, brackets among them; literals, documentation and lifetimes are left out.
fn flatten(stream: TokenStream, all: &mut Vec<Token>) {
    let mut stream = stream.into_iter().peekable();
    while let Some(tree) = stream.next() {
        let line = tree.span().start().line;
        let mut push = |text: &str| all.push(Token { line, text: text.to_owned() });
        match tree {
            TokenTree::Literal(_) => {}
            TokenTree::Ident(name) => push(name.to_string().trim_start_matches("r#")),
            TokenTree::Punct(mark) if mark.spacing() == Spacing::Joint => match mark.as_char() {
                '\'' => _ = stream.next(),
                ':' if stream
                    .next_if(|next| matches!(next, TokenTree::Punct(p) if p.as_char() == ':'))
                    .is_some() =>
                {
                    push("::");
                }
                mark => push(mark.encode_utf8(&mut [0; 4])),
            },
            TokenTree::Punct(mark) => push(mark.as_char().encode_utf8(&mut [0; 4])),
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                push(open);
                flatten(group.stream(), all);
                all.push(Token { line: group.span_close().start().line, text: close.to_owned() });
            }
        }
    }
}

/// Leaves out the items behind `#[cfg(test)]`, `#[cfg(all(test, ..))]` and `#[test]`.
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
        assert_eq!(words("r#type::a::<'static, u8> 1..=2"), "type :: a :: < , u8 > . . =");
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
