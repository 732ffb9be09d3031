//! Connections over loops: by what they carry.

use crate::common::{Conn, Origin, Reply, serve_with, until};
use crate::peer::{Client, get, run};

/// One connection holds many requests, so a later client is served on the other loop, however many are there: each loop
/// has its own connections to the origin, and the small ones never need more than one.
#[test]
fn one_that_carries_much_has_its_loop_to_itself() {
    const HELD: usize = 8;
    let origin = Origin::new(|_, head| match head.starts_with("GET /held ") {
        true => Reply::After(60_000, Box::new(Reply::Ok("late".to_owned()))),
        false => Reply::Ok("small".to_owned()),
    });
    let node = format!("server(\"origin\", addr=\"{}\", idle_timeout=60*s)", origin.addr);
    let served = serve_with(&format!("listen(\"127.0.0.1:0\", {node})"), 2, false);
    run(async {
        let mut client = Client::new(&served.addr).await;
        let mut held = Vec::new();
        for _ in 0..HELD {
            held.push(client.begin(get("/held"), true).await);
        }
        // The connection goes on while this waits.
        while origin.busy() < HELD {
            tokio::task::yield_now().await;
        }
        let mut small = Vec::new();
        for _ in 0..30 {
            let mut conn = Conn::new(&served.addr);
            assert_eq!(conn.get("/", "").body, "small");
            small.push(conn);
        }
        assert_eq!(origin.connections(), HELD + 1);
    });
    until(|| origin.busy() == 0);
}
