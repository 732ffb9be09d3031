//! Fields of messages in the access log: `"header:NAME"` of the request, `"response:NAME"` of the answer.

use crate::http::{InvalidWord, field_name, seen_field, short};

/// A field that each JSON line has, beside those of every line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogField<'a> {
    /// Of the request, as nodes see it.
    Request(&'a str),
    /// Of the answer that the client gets.
    Response(&'a str),
}

/// Fields that carry credentials: a log is read by more people than may have those.
const CREDENTIALS: [&str; 17] = [
    "api-key",
    "authentication-info",
    "authorization",
    "cookie",
    "cookie2",
    "proxy-authentication-info",
    "proxy-authorization",
    "set-cookie",
    "set-cookie2",
    "x-access-token",
    "x-amz-security-token",
    "x-api-key",
    "x-auth-token",
    "x-csrf-token",
    "x-goog-iap-jwt-assertion",
    "x-vault-token",
    "x-xsrf-token",
];

impl LogField<'_> {
    /// The field that an entry of `log_fields` names; `None`: it is none.
    pub fn parse(text: &str) -> Option<LogField<'_>> {
        match text.split_once(':')? {
            ("header", name) => Some(LogField::Request(name)),
            ("response", name) => Some(LogField::Response(name)),
            _ => None,
        }
    }
}

/// Checks an entry of `log_fields`.
///
/// # Errors
/// It names no field, one that carries credentials, or one that no message has there.
pub fn log_field(text: &str) -> Result<(), InvalidWord> {
    let Some(field) = LogField::parse(text) else {
        return Err(InvalidWord::new(
            format!("\"{}\" is not a field for the log", short(text)),
            Some("write \"header:NAME\" for a request's field, \"response:NAME\" for an answer's".to_owned()),
        ));
    };
    let name = match field {
        LogField::Request(name) => seen_field(name).map(|()| name)?,
        LogField::Response(name) => field_name(name).map(|()| name)?,
    };
    let plain = name.to_ascii_lowercase().replace('_', "-");
    if CREDENTIALS.contains(&plain.as_str()) {
        return Err(InvalidWord::new(
            format!("\"{}\" carries credentials, which no log may have", short(name)),
            Some("leave it out, or log a field that the application sets to say which user asked".to_owned()),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_and_fields_of_a_hop_are_refused() {
        for good in
            ["header:x-tenant", "header:X-Tenant", "response:content-type", "response:x_b", "header:host"]
        {
            assert!(log_field(good).is_ok(), "{good}");
        }
        for bad in [
            "x-tenant",
            "header:",
            "Header:x",
            "response:a b",
            "header:Authorization",
            "header:x_api_key",
            "response:Set-Cookie",
            "header:connection",
        ] {
            assert!(log_field(bad).is_err(), "{bad}");
        }
    }
}
