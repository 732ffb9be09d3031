//! Which keys move where targets come and go.

use super::load::{Client, file, servers, two_loops};
use super::support::{Origin, serve_whole};
use std::io::Write;
use weir_serve::{SetTarget, TargetState};

/// The target that answers each of `keys` keys.
fn owners(client: &mut Client, keys: usize) -> Vec<String> {
    (0..keys)
        .map(|key| {
            let request = format!("GET / HTTP/1.1\r\nHost: x\r\nx-user: user-{key}\r\n\r\n");
            client.0.get_mut().write_all(request.as_bytes()).expect("it is sent");
            let (status, body) = client.answer().expect("an answer");
            assert_eq!(status, 200);
            body
        })
        .collect()
}

/// Keys that went to another, though theirs was there before and after and the other is not the one that has come.
fn moved(before: &[String], after: &[String], gone: &str, came: &str) -> usize {
    before.iter().zip(after).filter(|(b, a)| b != a && b.as_str() != gone && a.as_str() != came).count()
}

/// Where a target goes, only its keys move; where one comes, only to it. A ring keeps that exactly; of maglev's table
/// few entries beside change hands (Eisenbud and others 2016, 5.3), and none where a target only drains.
#[test]
fn keys_move_no_more_than_they_must() {
    let origins: Vec<Origin> = ["a", "b", "c", "d", "e", "f"].iter().map(|name| Origin::new(name)).collect();
    for (policy, beside) in [("lb.ring_hash", 0.0), ("lb.maglev", 0.03)] {
        let of = |which: &[usize]| {
            let some: Vec<&Origin> = which.iter().map(|i| &origins[*i]).collect();
            file(&format!("{policy}([{}], key = key.header(\"x-user\"), name = \"apps\")", servers(&some)))
        };
        let all = [0, 1, 2, 3, 4, 5];
        let x = serve_whole(&of(&all), two_loops());
        let mut client = Client::new(x.addr());
        let (keys, mut sum, mut steps) = (400, 0, 0);
        let before = owners(&mut client, keys);
        for (gone, name) in [(0, "a"), (3, "d"), (5, "f")] {
            let left: Vec<usize> = all.iter().copied().filter(|i| *i != gone).collect();
            x.reload(&of(&left)).expect("it can be served");
            let without = owners(&mut client, keys);
            assert!(without.iter().all(|owner| owner != name));
            x.reload(&of(&all)).expect("it can be served");
            assert_eq!(owners(&mut client, keys), before, "{policy}: it is back, and so are its keys");
            sum += moved(&before, &without, name, "");
            steps += 1;
            let drain = SetTarget { state: Some(TargetState::Drain), ..SetTarget::default() };
            let file = SetTarget { state: Some(TargetState::File), ..SetTarget::default() };
            x.remote().set_target("apps", &origins[gone].addr.to_string(), drain).expect("it is there");
            let drained = owners(&mut client, keys);
            assert!(drained.iter().all(|owner| owner != name), "{policy}: {name} is drained");
            assert_eq!(moved(&before, &drained, name, ""), 0, "{policy}: {name} is drained");
            x.remote().set_target("apps", &origins[gone].addr.to_string(), file).expect("it is there");
            assert_eq!(owners(&mut client, keys), before);
        }
        let most = (beside * (keys * steps) as f64) as usize;
        assert!(sum <= most, "{policy}: {sum} of {} keys moved beside those of who left", keys * steps);
    }
}
