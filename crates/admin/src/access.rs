//! Which requests are answered, and which may change something.
//!
//! A page from elsewhere may send requests here by the operator's browser. By a name of its own that resolves here
//! (DNS rebinding) it could read the answers, so a name must be known; and a change requires a token, which no
//! browser adds by itself.

use crate::limits::TOKEN_BYTES;
use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, HOST};
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::net::IpAddr;
use std::path::PathBuf;
use subtle::ConstantTimeEq;

/// How a request arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Channel {
    /// By `--admin` over TCP.
    Tcp,
    /// By `--admin` over a Unix socket.
    Unix,
    /// By `--control`: access to the socket permits everything.
    Control,
}

/// The rules.
#[derive(Clone, Debug, Default)]
pub(crate) struct Access {
    /// Names besides loopback's.
    pub hosts: Vec<String>,
    /// The file of the token. It is read for each request that needs it, so that a new one holds at once.
    pub token: Option<PathBuf>,
}

/// Why a request is not answered, or may not change anything: a sentence with a remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Denial(String);

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Denial {}

impl Access {
    /// Why a request is not answered at all.
    pub fn check_host(&self, via: Channel, headers: &HeaderMap) -> Result<(), Denial> {
        if via != Channel::Tcp {
            return Ok(());
        }
        let mut hosts = headers.get_all(HOST).iter();
        let host = hosts.next().filter(|_| hosts.next().is_none()).and_then(|host| host.to_str().ok());
        let Some(host) = host else {
            return denied("the request has no Host, or more than one; send one that names this machine");
        };
        let name = name_of(host);
        let is_loopback = ["localhost", "ip6-localhost"].iter().any(|known| name.eq_ignore_ascii_case(known))
            || name.to_ascii_lowercase().ends_with(".localhost");
        let is_known = self.hosts.iter().any(|known| name.eq_ignore_ascii_case(known));
        if is_loopback || is_known || name.parse::<IpAddr>().is_ok() {
            return Ok(());
        }
        let name: String = name.chars().take(80).collect();
        Err(Denial(format!(
            "the Host {name:?} is not known here; use an IP address or localhost, or start weir with \
                --admin-host NAME"
        )))
    }

    /// Why a request may not change anything.
    pub fn check_token(&self, via: Channel, headers: &HeaderMap) -> Result<(), Denial> {
        if via == Channel::Control {
            return Ok(());
        }
        let Some(path) = &self.token else {
            return denied(
                "nothing can be changed here; use the socket of --control, or start weir with --admin-token \
                    FILE and send Authorization: Bearer with its contents",
            );
        };
        let said = headers.get(AUTHORIZATION).and_then(|said| said.as_bytes().split_first_chunk::<7>());
        let Some(said) =
            said.filter(|(scheme, _)| scheme.eq_ignore_ascii_case(b"bearer ")).map(|(_, rest)| rest)
        else {
            return denied(
                "a change needs the token: send Authorization: Bearer with the contents of the file of \
                    --admin-token",
            );
        };
        let token = read_token(path).map_err(|e| {
            Denial(format!(
                "the file of --admin-token cannot be used: {}; no change is possible until it can",
                weir_serve::explain(&e)
            ))
        })?;
        match bool::from(token.as_slice().ct_eq(said.trim_ascii())) {
            true => Ok(()),
            false => denied("the token is wrong; send the contents of the file of --admin-token"),
        }
    }
}

fn denied(why: &str) -> Result<(), Denial> {
    Err(Denial(why.to_owned()))
}

/// The token in a file, without the blanks around it.
pub(crate) fn read_token(path: &std::path::Path) -> io::Result<Vec<u8>> {
    let wrong = |why: &str| Err(io::Error::new(io::ErrorKind::InvalidData, why));
    let mut bytes = Vec::new();
    File::open(path)?.take(TOKEN_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > TOKEN_BYTES {
        return wrong("it is larger than 4 KiB");
    }
    let token = bytes.trim_ascii();
    match token {
        [] => wrong("it is empty"),
        _ if !token.iter().all(u8::is_ascii_graphic) => wrong("a token is one word of ASCII characters"),
        _ => Ok(token.to_vec()),
    }
}

/// The name of a Host, without its port.
fn name_of(host: &str) -> &str {
    if let Some((name, _)) = host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return name;
    }
    match host.split_once(':') {
        // More than one: an IPv6 address without its brackets, which is not a Host.
        Some((name, port)) if !port.contains(':') => name,
        Some(_) => "",
        None => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asks(host: &str) -> bool {
        let access = Access { hosts: vec!["weir.example.net".to_owned()], token: None };
        let headers = [(HOST, host.parse().expect("a value"))].into_iter().collect();
        access.check_host(Channel::Tcp, &headers).is_ok()
    }

    #[test]
    fn only_names_of_this_machine_are_answered() {
        for host in [
            "127.0.0.1:9901",
            "10.1.2.3",
            "[::1]:9901",
            "[::1]",
            "localhost",
            "LocalHost:1",
            "a.localhost:80",
            "weir.example.net",
            "Weir.Example.Net:9901",
        ] {
            assert!(asks(host), "{host}");
        }
        for host in [
            "evil.example",
            "evil.example:9901",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "",
            "::1",
            "weir.example.net.",
            "xlocalhost",
        ] {
            assert!(!asks(host), "{host}");
        }
        assert!(Access::default().check_host(Channel::Unix, &HeaderMap::new()).is_ok());
        assert!(Access::default().check_host(Channel::Tcp, &HeaderMap::new()).is_err());
    }

    #[test]
    fn changes_need_the_token_or_the_socket() {
        let file = std::env::temp_dir().join(format!("weir-admin-token-{}", std::process::id()));
        std::fs::write(&file, "s3cret\n").expect("a file");
        let access = Access { hosts: Vec::new(), token: Some(file.clone()) };
        let with = |said: &str| {
            let headers = [(AUTHORIZATION, said.parse().expect("a value"))].into_iter().collect();
            access.check_token(Channel::Tcp, &headers)
        };
        assert!(with("Bearer s3cret").is_ok() && with("bearer  s3cret").is_ok());
        for said in ["Bearer s3cre", "Bearer s3cret2", "Bearer", "Basic s3cret", "s3cret", "Bearer "] {
            let why = with(said).expect_err(said);
            assert!(why.0.contains("--admin-token"), "{why}");
        }
        assert!(access.check_token(Channel::Control, &HeaderMap::new()).is_ok());
        assert!(Access::default().check_token(Channel::Unix, &HeaderMap::new()).is_err());
        std::fs::write(&file, " \n").expect("a file");
        assert!(with("Bearer s3cret").expect_err("empty").0.contains("empty"));
        std::fs::remove_file(&file).expect("it is there");
        assert!(with("Bearer s3cret").is_err());
    }
}
