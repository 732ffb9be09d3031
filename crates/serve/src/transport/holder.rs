//! What holds a port that cannot be bound, where /proc tells.

use std::fmt;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;

/// The state of a listening socket in /proc/net/tcp.
const LISTENS: &str = "0A";

/// What listens at an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Holder {
    /// This process.
    Own,
    /// This process: the listener of this name.
    OwnListener(String),
    /// This process: its admin address.
    OwnAdmin,
    /// Another process, by name and number.
    Process(String, u32),
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Holder::Own => f.write_str("held by this process"),
            Holder::OwnListener(name) => write!(f, "held by listener \"{name}\" of this file"),
            Holder::OwnAdmin => f.write_str("held by --admin"),
            Holder::Process(name, pid) if name == "weir" => write!(f, "held by another weir, pid {pid}"),
            Holder::Process(name, pid) => write!(f, "held by {name}, pid {pid}"),
        }
    }
}

impl Holder {
    /// What holds the port of an address; `None`: that cannot be seen, as with another user's process.
    pub(crate) fn find(address: SocketAddr) -> Option<Holder> {
        let inodes: Vec<String> = ["/proc/net/tcp", "/proc/net/tcp6"]
            .iter()
            .filter_map(|table| fs::read_to_string(table).ok())
            .flat_map(|table| listening_inodes(&table, address.port()))
            .collect();
        if inodes.is_empty() {
            return None;
        }
        let is_held = |pid: u32| holds(&format!("/proc/{pid}/fd"), &inodes);
        if is_held(std::process::id()) {
            return Some(Holder::Own);
        }
        let processes = fs::read_dir("/proc").ok()?.flatten();
        let mut numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let pid = numbers.find(|pid| is_held(*pid))?;
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
        Some(Holder::Process(name.trim().to_owned(), pid))
    }
}

/// The sockets that listen at a port, by a table of /proc/net.
fn listening_inodes(table: &str, port: u16) -> Vec<String> {
    let port = format!(":{port:04X}");
    let of_line = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (local, state, inode) = (words.get(1)?, words.get(3)?, words.get(9)?);
        (local.ends_with(&port) && *state == LISTENS).then(|| format!("socket:[{inode}]"))
    };
    table.lines().filter_map(of_line).collect()
}

/// Whether one of the descriptors in a folder is one of these sockets.
fn holds(folder: &str, inodes: &[String]) -> bool {
    let Ok(all) = fs::read_dir(Path::new(folder)) else { return false };
    let mut links = all.flatten().filter_map(|entry| fs::read_link(entry.path()).ok());
    links.any(|link| inodes.iter().any(|inode| link.as_os_str() == inode.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_of_this_process_is_found() {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = socket.local_addr().expect("its address");
        assert_eq!(Holder::find(address), Some(Holder::Own));
        assert_eq!(Holder::Process("java".to_owned(), 4711).to_string(), "held by java, pid 4711");
    }
}
