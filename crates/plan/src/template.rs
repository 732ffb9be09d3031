//! Texts with `{host}`, `{uri}`, `{client}` and the parts of a client's certificate in them: where `redirect` leads,
//! what `rewrite` sets. `{{` and `}}` are literal braces.

use crate::http::{self, InvalidWord, short};

/// A part of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Literal text.
    Text(&'a str),
    /// The request's host, as it came.
    Host,
    /// Its path and query, as they came.
    Uri,
    /// The client's address.
    Client,
    /// The subject of the client's certificate, empty without one; so are the next two.
    ClientSubject,
    /// The first DNS, URI or mail name of that certificate.
    ClientName,
    /// Its SHA-256, in hexadecimal.
    ClientSha256,
}

/// The names that a template knows.
const NAMES: [(&str, Piece<'static>); 6] = [
    ("{host}", Piece::Host),
    ("{uri}", Piece::Uri),
    ("{client}", Piece::Client),
    ("{client_subject}", Piece::ClientSubject),
    ("{client_name}", Piece::ClientName),
    ("{client_sha256}", Piece::ClientSha256),
];

/// Whether a template has a part of the client's certificate.
pub fn asks_for_certificate(template: &str) -> bool {
    let is_certificate =
        |piece| matches!(piece, Piece::ClientSubject | Piece::ClientName | Piece::ClientSha256);
    pieces(template).into_iter().any(is_certificate)
}

/// The parts of a template; a plan's templates have been checked, so an unknown brace is literal text.
pub fn pieces(template: &str) -> Vec<Piece<'_>> {
    let (mut parts, mut rest) = (Vec::new(), template);
    while !rest.is_empty() {
        let (part, after) = next(rest);
        parts.push(part);
        rest = after;
    }
    parts
}

/// The first part, and what follows it; the text is not empty.
fn next(text: &str) -> (Piece<'_>, &str) {
    let Some(brace) = text.find(['{', '}']) else { return (Piece::Text(text), "") };
    if brace > 0 {
        let (plain, rest) = text.split_at(brace);
        return (Piece::Text(plain), rest);
    }
    if let Some((name, piece)) = NAMES.into_iter().find(|(name, _)| text.starts_with(name)) {
        return (piece, &text[name.len()..]);
    }
    let doubled = text.starts_with("{{") || text.starts_with("}}");
    (Piece::Text(&text[..1]), &text[if doubled { 2 } else { 1 }..])
}

/// Whether a template is one: braces that mean nothing are refused.
pub fn check(template: &str) -> Result<(), InvalidWord> {
    let mut rest = template;
    while let Some(brace) = rest.find(['{', '}']) {
        rest = &rest[brace..];
        let known = NAMES.iter().any(|(name, _)| rest.starts_with(name));
        if !known && !rest.starts_with("{{") && !rest.starts_with("}}") {
            let shown = short(rest.split_inclusive('}').next().unwrap_or(rest));
            let message = format!(
                "`{shown}` has no meaning here: there are {{host}}, {{uri}}, {{client}}, {{client_subject}}, {{client_name}} and {{client_sha256}}"
            );
            return Err(InvalidWord::new(
                message,
                Some("write a literal brace twice: `{{` or `}}`".to_owned()),
            ));
        }
        rest = next(rest).1;
    }
    Ok(())
}

/// Whether it may be the value of a field.
pub fn field_value(template: &str) -> Result<(), InvalidWord> {
    http::field_value(template)?;
    check(template)
}

/// Whether it may be where a redirection leads.
pub fn location(template: &str) -> Result<(), InvalidWord> {
    http::field_value(template)?;
    check(template)?;
    let rooted = template.starts_with('/') || template.starts_with("{uri}");
    let scheme = ["http://", "https://"].iter().any(|s| template.len() > s.len() && template.starts_with(s));
    if !rooted && !scheme {
        let help = format!("write \"https://{{host}}{{uri}}\", or a path such as \"/{}\"", short(template));
        return Err(InvalidWord::new(
            format!("\"{}\" is neither a path nor a URL", short(template)),
            Some(help),
        ));
    }
    if template.bytes().any(|b| !b.is_ascii_graphic()) {
        let why = "has a character that a URL cannot have: write it as %XX, such as %20";
        return Err(InvalidWord::new(format!("\"{}\" {why}", short(template)), None));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_taken_apart() {
        use Piece::{Client, Host, Text, Uri};
        assert_eq!(pieces("https://{host}{uri}"), [Text("https://"), Host, Uri]);
        assert_eq!(pieces("{client}!"), [Client, Text("!")]);
        assert_eq!(pieces("a{{host}}"), [Text("a"), Text("{"), Text("host"), Text("}")]);
        assert_eq!(pieces("{x"), [Text("{"), Text("x")], "unchecked, a brace stands for itself");
        assert!(pieces("").is_empty());
    }

    #[test]
    fn unknown_names_are_refused() {
        assert!(check("{host} {uri} {client} {{}} {{host}}").is_ok());
        for wrong in ["{hots}", "{", "}", "a}b", "{{}", "{host", "{{{"] {
            assert!(check(wrong).is_err(), "{wrong}");
        }
        assert!(
            location("https://{host}{uri}").is_ok() && location("/a?b").is_ok() && location("{uri}").is_ok()
        );
        for wrong in ["", "a", "https://", "ftp://a", "//a b", "/\u{e9}"] {
            assert!(location(wrong).is_err(), "{wrong}");
        }
    }
}
