//! Where more may come than may wait, reading continues: no stream waits for room that it takes itself.

use crate::common;
use crate::peer::{Answer, Client, Origin, Reply, post, run};
use crate::{BUDGET, Budgeted};
use std::future::Future;

/// This number of streams, with windows of 64 KiB, may bring more than the budget.
const STREAMS: usize = 4 * BUDGET / (64 << 10);
const BODY: usize = 256 << 10;

/// The answers to as many clients at once, each on a connection of its own: no connection's window bounds them.
fn all<F>(addr: &str, one: fn(String) -> F) -> Vec<Answer>
where
    F: Future<Output = Answer> + Send + 'static,
{
    run(async {
        let tasks: Vec<_> = (0..STREAMS).map(|_| tokio::spawn(one(addr.to_owned()))).collect();
        let mut answers = Vec::new();
        for task in tasks {
            answers.push(task.await.expect("an answer"));
        }
        answers
    })
}

#[test]
fn uploads() {
    let origin = common::Origin::named("origin");
    let served = Budgeted::new(&format!("server(\"origin\", addr=\"{}\")", origin.addr));
    let answers = all(&served.addr, |addr| async move {
        let body = vec![b'x'; BODY];
        Client::new(&addr).await.send(post("/"), &body, None).await.expect("an answer")
    });
    assert!(answers.iter().all(|answer| answer.text() == "origin"));
    assert!(origin.seen().iter().all(|(_, body)| body.len() > BODY));
}

#[test]
fn answers_of_origins_of_http_2() {
    let origin = Origin::new(100, |_, _| Reply::Ok(&[], vec![b'x'; BODY], None));
    let served = Budgeted::new(&format!("server(\"origin\", addr=\"{}\", protocol=\"h2\")", origin.addr));
    let answers = all(&served.addr, |addr| async move { Client::new(&addr).await.get("/").await });
    assert!(answers.iter().all(|answer| answer.body.len() == BODY));
}

#[test]
fn answers_of_its_own() {
    let served = Budgeted::new(&format!("respond(200, body=\"x\" * {BODY})"));
    let answers = all(&served.addr, |addr| async move { Client::new(&addr).await.get("/").await });
    assert!(answers.iter().all(|answer| answer.body.len() == BODY));
}
