//! A name server on loopback that gives the answers of the test, with a TTL of one second.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

/// What it says of every name.
#[derive(Clone, Debug)]
pub enum Says {
    Addresses(Vec<IpAddr>),
    NoSuchName,
    Failure,
    Nothing,
}

pub struct Dns {
    pub addr: SocketAddr,
    says: Arc<Mutex<Says>>,
    asked: Arc<AtomicU32>,
}

impl Dns {
    pub fn new(says: Says) -> Dns {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
        let addr = socket.local_addr().expect("its address");
        let (says, asked) = (Arc::new(Mutex::new(says)), Arc::new(AtomicU32::new(0)));
        let (say, count) = (says.clone(), asked.clone());
        std::thread::spawn(move || {
            let mut packet = [0; 1500];
            while let Ok((n, from)) = socket.recv_from(&mut packet) {
                count.fetch_add(1, SeqCst);
                let says = say.lock().unwrap().clone();
                if let Some(answer) = answer(&packet[..n], &says) {
                    let _ = socket.send_to(&answer, from);
                }
            }
        });
        Dns { addr, says, asked }
    }

    pub fn says(&self, says: Says) {
        *self.says.lock().unwrap() = says;
    }

    /// Questions so far.
    pub fn asked(&self) -> u32 {
        self.asked.load(SeqCst)
    }
}

pub fn addresses(text: &str) -> Says {
    Says::Addresses(text.split_whitespace().map(|ip| ip.parse().expect("an address")).collect())
}

/// RFC 1035, 4: the question again, and what is said of it.
fn answer(query: &[u8], says: &Says) -> Option<Vec<u8>> {
    let name = query.get(12..)?.iter().position(|b| *b == 0)? + 1;
    let question = query.get(12..12 + name + 4)?;
    let kind = u16::from_be_bytes([question[name], question[name + 1]]);
    let (code, list): (u8, Vec<&IpAddr>) = match says {
        Says::Addresses(list) => {
            (0, list.iter().filter(|ip| kind == if ip.is_ipv4() { 1 } else { 28 }).collect())
        }
        Says::NoSuchName => (3, vec![]),
        Says::Failure => (2, vec![]),
        Says::Nothing => return None,
    };
    let mut out = query[..2].to_vec();
    out.extend([0x81, 0x80 | code, 0, 1, 0, list.len() as u8, 0, 0, 0, 0]);
    out.extend(question);
    for ip in list {
        let data = match ip {
            IpAddr::V4(ip) => ip.octets().to_vec(),
            IpAddr::V6(ip) => ip.octets().to_vec(),
        };
        out.extend([0xc0, 12, (kind >> 8) as u8, kind as u8, 0, 1, 0, 0, 0, 1, 0, data.len() as u8]);
        out.extend(data);
    }
    Some(out)
}
