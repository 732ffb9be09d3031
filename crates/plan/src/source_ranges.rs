//! Ranges of the arguments of `find.*`, and the words they may be: files and plans read from JSON are held to
//! the same.

use crate::address::{self, Address};
use crate::http::{InvalidWord, short};
use std::net::{IpAddr, SocketAddr};

/// The least and the greatest time between two questions to a registry, ns.
pub const POLL_NS: (u64, u64) = (50_000_000, 3_600_000_000_000);

/// The same of the time for which a member may be missing from the answers of DNS.
pub const HOLD_NS: (u64, u64) = (0, 3_600_000_000_000);

/// Servers of one registry at most.
pub const MOST_SERVERS: usize = 100;

/// Name servers that are asked for one name at most.
pub const MOST_NAME_SERVERS: usize = 16;

/// The longest URL, bytes.
const MOST_URL: usize = 2048;

/// The longest name of an application, a service, a tag or a datacenter, bytes.
const MOST_NAME: usize = 255;

/// The port at which name servers answer.
const DNS_PORT: u16 = 53;

/// How a URL is written.
const URL_FORM: &str = "write it as \"http://host:port\" or \"https://host:port/path\"";

fn wrong<T>(problem: String, remedy: impl Into<String>) -> Result<T, InvalidWord> {
    Err(InvalidWord::new(problem, Some(remedy.into())))
}

/// The beginning of a text, without characters that do not print.
fn shown(text: &str) -> String {
    short(&text.escape_debug().to_string())
}

/// Whether it may be the path of a file: a list, credentials, a kubeconfig.
pub fn path(text: &str) -> Result<(), InvalidWord> {
    if text.is_empty() || text.len() > 4096 || text.chars().any(char::is_control) {
        let problem = format!("\"{}\" is not the path of a file", shown(text));
        return wrong(problem, "write a path that is relative to the folder of the file that names it");
    }
    Ok(())
}

/// A name that DNS is asked for: a host, or a service as `_http._tcp.example.com`.
pub fn dns_name(text: &str) -> Result<(), InvalidWord> {
    let no =
        |why: &str, remedy: String| wrong(format!("\"{}\" is not a name in DNS: {why}", shown(text)), remedy);
    if text.parse::<IpAddr>().is_ok() || text.parse::<SocketAddr>().is_ok() {
        let remedy = "give each address a `server(addr=...)`, or let a file list them: \
            `find.file(\"servers.json\", f)`";
        return no("it is an address", remedy.to_owned());
    }
    if text.contains("://") {
        return no("it is a URL", "write its host alone, and the port as `port=8080`".to_owned());
    }
    if let Some((name, port)) = text.rsplit_once(':')
        && !name.is_empty()
        && port.parse::<u16>().is_ok()
    {
        return no("it has a port", format!("write \"{}\" with `port={port}`", shown(name)));
    }
    let bare = text.strip_suffix('.').unwrap_or(text);
    let sign = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    let is_part = |part: &str| (1..=63).contains(&part.len()) && part.bytes().all(sign);
    if bare.len() > 253 || !bare.split('.').all(is_part) {
        return no(
            "between its dots there are 1 to 63 letters, digits, `-` or `_`, and it has 253 characters at most",
            "write such as \"app.example.com\"".to_owned(),
        );
    }
    Ok(())
}

/// A name server: its address or name, and its port.
pub fn name_server(text: &str) -> Result<(), InvalidWord> {
    let without_port = || format!("\"{}\" is not the address of a name server: it has no port", shown(text));
    if let Ok(ip) = text.parse::<IpAddr>() {
        return wrong(without_port(), format!("write \"{}\"", SocketAddr::new(ip, DNS_PORT)));
    }
    if !text.is_empty() && !text.contains(':') {
        return wrong(without_port(), format!("write \"{}:{DNS_PORT}\"", shown(text)));
    }
    address::server(text)?;
    match Address::parse(text) {
        Some(Address::Unix(_)) => wrong(
            format!("\"{}\" is a Unix socket, by which no DNS is spoken", shown(text)),
            "write \"10.0.0.2:53\"",
        ),
        _ => Ok(()),
    }
}

/// The address of a registry: `http://host[:port][/path]`, or `https`.
pub fn url(text: &str) -> Result<(), InvalidWord> {
    // Before any message that shows it: no log and no screen should have a password.
    if text.contains('@') {
        let problem = "a URL of a registry has no user and no password: all before its `@` would be in plans \
            and logs";
        let remedy = "leave that out, and name a file that holds it: `auth=` of `find.eureka`, `token=` of \
            `find.consul`";
        return wrong(problem.to_owned(), remedy);
    }
    let no = |why: &str| wrong(format!("\"{}\" is not the URL of a registry: {why}", shown(text)), URL_FORM);
    let Some((scheme, rest)) =
        text.split_once("://").filter(|(scheme, _)| matches!(*scheme, "http" | "https"))
    else {
        return no("it does not begin with http:// or https://");
    };
    let sign = |b: u8| b.is_ascii_graphic() && !b"\"<>?#\\^`{|}".contains(&b);
    if text.len() > MOST_URL || !rest.bytes().all(sign) {
        return no("it has a query, or what no URL has");
    }
    let authority = rest.split('/').next().unwrap_or_default();
    let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| !port.contains(']'));
    let port = if scheme == "https" { ":443" } else { ":80" };
    let whole = format!("{authority}{}", if has_port { "" } else { port });
    if address::server(&whole).is_err() {
        return no("it has no host, or no port from 1 to 65535");
    }
    Ok(())
}

/// Whether a URL is spoken to by TLS.
pub fn is_https(url: &str) -> bool {
    url.starts_with("https://")
}

/// The address of a Eureka server: all before `/apps`.
pub fn eureka_url(text: &str) -> Result<(), InvalidWord> {
    url(text)?;
    refuse_end(text, "/apps")
}

/// The address of a Consul agent: all before `/v1`.
pub fn consul_url(text: &str) -> Result<(), InvalidWord> {
    url(text)?;
    refuse_end(text, "/v1")
}

/// A path to which weir itself adds this end.
fn refuse_end(text: &str, end: &str) -> Result<(), InvalidWord> {
    match text.trim_end_matches('/').strip_suffix(end) {
        None => Ok(()),
        Some(base) => {
            let problem = format!("\"{}\" ends with {end}, which weir adds", shown(text));
            wrong(problem, format!("write \"{}\"", shown(base)))
        }
    }
}

/// The name of an application, a service, a tag or a datacenter, as registries have them.
pub fn registered_name(text: &str) -> Result<(), InvalidWord> {
    if text.is_empty() || text.len() > MOST_NAME || text.chars().any(|c| c.is_control() || c.is_whitespace())
    {
        let problem = format!("\"{}\" is not a name in a registry", shown(text));
        return wrong(problem, format!("write 1 to {MOST_NAME} characters without blanks"));
    }
    Ok(())
}

/// The name of a service or a namespace in Kubernetes.
pub fn kubernetes_name(text: &str) -> Result<(), InvalidWord> {
    if is_label(text) {
        return Ok(());
    }
    let first = text.split('.').next().unwrap_or_default();
    let remedy = match text.contains('.') && is_label(first) {
        true => format!("write \"{first}\": a namespace is an argument of its own"),
        false => "write 1 to 63 small letters, digits or `-`, such as \"app\"".to_owned(),
    };
    wrong(format!("\"{}\" is not a name in Kubernetes", shown(text)), remedy)
}

/// The name of a port in Kubernetes.
pub fn kubernetes_port(text: &str) -> Result<(), InvalidWord> {
    let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if is_number {
        let problem = format!("\"{}\" is a number, and no name of a port", shown(text));
        return wrong(problem, format!("write `port={}`", shown(text)));
    }
    if is_label(text) {
        return Ok(());
    }
    let problem = format!("\"{}\" is not the name of a port in Kubernetes", shown(text));
    wrong(problem, "write 1 to 63 small letters, digits or `-`, such as \"http\"")
}

/// Whether it is a label as Kubernetes has them (RFC 1123).
fn is_label(text: &str) -> bool {
    let sign = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    (1..=63).contains(&text.len()) && text.bytes().all(sign) && !text.starts_with('-') && !text.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is wrong with a text, with its remedy.
    fn said(check: fn(&str) -> Result<(), InvalidWord>, text: &str) -> String {
        let wrong = check(text).expect_err(text);
        format!("{wrong}; {}", wrong.remedy.as_ref().expect("a remedy"))
    }

    #[test]
    fn names_in_dns_are_hosts_and_services() {
        for right in
            ["app", "app.internal", "App.Example.com.", "_http._tcp.app.example.com", "xn--bcher-kva.de"]
        {
            assert_eq!(dns_name(right), Ok(()), "{right}");
        }
        for (text, part) in [
            ("10.0.0.1", "server(addr=...)"),
            ("[::1]:80", "it is an address"),
            ("http://app", "it is a URL"),
            ("app.internal:8080", "write \"app.internal\" with `port=8080`"),
            ("a..b", "between its dots"),
            ("", "between its dots"),
            (".", "between its dots"),
            ("a b", "between its dots"),
            ("b\u{fc}cher.de", "between its dots"),
        ] {
            let said = said(dns_name, text);
            assert!(said.contains(part), "{text}: {said}");
        }
        assert!(dns_name(&"a".repeat(64)).is_err() && dns_name(&"a.".repeat(128)).is_err());
    }

    #[test]
    fn name_servers_have_a_port() {
        for right in ["10.0.0.2:53", "[::1]:5353", "ns1.internal:53"] {
            assert_eq!(name_server(right), Ok(()), "{right}");
        }
        for (text, part) in [
            ("10.0.0.2", "write \"10.0.0.2:53\""),
            ("::1", "write \"[::1]:53\""),
            ("ns1.internal", "write \"ns1.internal:53\""),
            ("unix:/run/dns", "Unix socket"),
        ] {
            let said = said(name_server, text);
            assert!(said.contains(part), "{text}: {said}");
        }
        for wrong in ["", ":53", "10.0.0.2:0", "10.0.0.2:70000", "224.0.0.251:53"] {
            assert!(name_server(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn urls_have_a_scheme_a_host_and_no_password() {
        for right in [
            "http://a",
            "https://a:8500/",
            "http://10.0.0.1:8761/eureka",
            "http://[::1]:8500",
            "http://a_b:1/x",
        ] {
            assert_eq!(url(right), Ok(()), "{right}");
        }
        for wrong in [
            "",
            "a:8500",
            "ftp://a",
            "http://",
            "http:///a",
            "http://:80",
            "http://a:0",
            "http://a:99999",
            "http://a:b",
            "http://a?b=c",
            "http://a#b",
            "http://a b",
            "http://::1:80",
            "HTTP://a",
            "http://a/\n",
            "http://255.255.255.255",
        ] {
            assert!(said(url, wrong).ends_with(URL_FORM), "{wrong}");
        }
        for secret in ["http://anna:secret@a:8500", "anna:secret@a"] {
            let said = said(url, secret);
            assert!(!said.contains("secret") && said.contains("auth="), "{said}");
        }
        assert!(is_https("https://a") && !is_https("http://a"));
    }

    #[test]
    fn what_weir_adds_is_left_out() {
        assert!(eureka_url("http://a:8761/eureka/").is_ok() && consul_url("http://a:8500").is_ok());
        assert!(said(eureka_url, "http://a/eureka/apps/").contains("write \"http://a/eureka\""));
        assert!(said(consul_url, "http://a:8500/v1").contains("write \"http://a:8500\""));
    }

    #[test]
    fn names_of_registries_are_words() {
        assert!(registered_name("SHOP-API").is_ok() && registered_name("a/b").is_ok());
        assert!(["", "a b", "a\n"].iter().all(|text| registered_name(text).is_err()));
        assert!(registered_name(&"a".repeat(256)).is_err());
        assert!(kubernetes_name("app-2").is_ok() && kubernetes_port("http").is_ok());
        assert!(["", "App", "-a", "a-", "a_b"].iter().all(|text| kubernetes_name(text).is_err()));
        assert!(said(kubernetes_name, "app.shop.svc").contains("write \"app\""));
        assert!(said(kubernetes_port, "8080").contains("`port=8080`") && kubernetes_port("").is_err());
    }
}
