//! weir's codec and the `h2` crate talk to each other, in both roles: each message arrives as it was sent, nothing is left,
//! and no error of the connection happens.

use crate::exchange::{Exchange, Message, exchanges};
use crate::h2_sides::{self, Side};
use crate::pipe::{Half, Pipe};
use crate::player::Player;
use std::collections::BTreeMap;
use std::rc::Rc;
use weir_http2::{Config, ErrorCode, Role};
use weir_testkit::Random;

type Whole = BTreeMap<usize, (u16, Message)>;

fn sorted(message: &Message) -> Message {
    let mut message = message.clone();
    message.fields.sort();
    if let Some(trailers) = &mut message.trailers {
        trailers.sort();
    }
    message
}

/// Limits of our side.
fn config(random: &mut Random, config: Config) -> Config {
    Config {
        max_streams: [100, 1, 4][random.below(3)],
        stream_window: [65_536, 500, 9000][random.below(3)],
        connection_window: [1 << 20, 65_535, 200_000][random.below(3)],
        header_table: [4096, 0, 300, 8192][random.below(4)],
        ..config
    }
}

/// What is left on its way, and what both sides know in the end.
fn play(seed: u64, role: Role) -> usize {
    let random = &mut Random::new(seed);
    let mut exchanges = exchanges(random);
    let max_streams = [100, 1, 3][random.below(3)];
    if role == Role::Client && max_streams < 100 {
        // Requests leave before the limit is known, and some are refused. Trailers of those, which are on their way by
        // then, end the whole connection at the `h2` crate: see `h2_differences`.
        exchanges.iter_mut().for_each(|exchange| exchange.request.trailers = None);
    }
    let exchanges: Rc<[Exchange]> = exchanges.into();
    let (to_ours, to_other) = (Half::default(), Half::default());
    let most = [usize::MAX, 1000, 50][random.below(3)];
    let io = Pipe { incoming: to_other.clone(), outgoing: to_ours.clone(), most };
    let (mut other, defaults) = match role {
        Role::Client => (h2_sides::server(io, exchanges.clone(), max_streams, random), Config::CLIENT),
        Role::Server => (h2_sides::client(io, exchanges.clone(), random), Config::SERVER),
    };
    let mut ours = Player::new(role, config(random, defaults), &exchanges);
    let mut is_quiet = false;
    for _ in 0..200_000 {
        let count = to_ours.borrow().len().min(most);
        let bytes: Vec<u8> = to_ours.borrow_mut().drain(..count).collect();
        let out = ours.turn(&bytes);
        to_other.borrow_mut().extend(&out);
        let is_idle = other.turn();
        let is_read = to_other.borrow().is_empty() || other.is_over;
        is_quiet = is_idle && ours.is_idle() && to_ours.borrow().is_empty() && is_read;
        if is_quiet && out.is_empty() {
            break;
        }
    }
    assert!(is_quiet, "seed {seed}: it comes to an end");
    assert_eq!(ours.conn.streams(), 0, "seed {seed}");
    check(seed, role, &exchanges, &ours, &other)
}

fn check(seed: u64, role: Role, exchanges: &[Exchange], ours: &Player<'_>, other: &Side) -> usize {
    let theirs = other.notes.borrow();
    let (asked, answered): (&Whole, &Whole) = match role {
        Role::Client => (&theirs.whole, &ours.whole),
        Role::Server => (&ours.whole, &theirs.whole),
    };
    for (number, exchange) in exchanges.iter().enumerate() {
        if exchange.is_cut() {
            continue;
        }
        let (_, request) = asked.get(&number).unwrap_or_else(|| {
            panic!("seed {seed}: no request {number}: {:?} {:?}", ours.resets, theirs.resets)
        });
        assert_eq!(sorted(request), sorted(&exchange.request), "seed {seed}: request {number}");
        let (status, answer) =
            answered.get(&number).unwrap_or_else(|| panic!("seed {seed}: no answer {number}"));
        assert_eq!(*status, exchange.status, "seed {seed}: answer {number}");
        assert_eq!(sorted(answer), sorted(&exchange.answer), "seed {seed}: answer {number}");
    }
    let ours = ours.resets.iter().map(|(number, code)| (*number, *code));
    let theirs = theirs.resets.iter().map(|(number, reason)| (*number, ErrorCode(u32::from(*reason))));
    for (number, code) in ours.chain(theirs) {
        let exchange = &exchanges[number];
        let expected = if exchange.is_refused { ErrorCode::REFUSED_STREAM } else { ErrorCode::CANCEL };
        assert!(exchange.is_cut() && code == expected, "seed {seed}: {number} {code}");
    }
    exchanges.len()
}

#[test]
fn its_server_serves_our_client() {
    let count: usize = (0..300).map(|seed| play(seed, Role::Client)).sum();
    assert!(count > 3000, "{count}");
}

#[test]
fn our_server_serves_its_client() {
    let count: usize = (1000..1300).map(|seed| play(seed, Role::Server)).sum();
    assert!(count > 3000, "{count}");
}
