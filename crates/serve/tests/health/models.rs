//! Checks of built-in servers: what they skip, what they cost, and what deceives them.

use crate::support::{serve, until};

#[test]
fn a_check_skips_delays_and_meets_faults() {
    let x = serve(
        r#"never = 1000*hours
x = lb.random([server("slow", model=dist.fixed(300*ms)),
               server("dead", model=faulty(never, never, delay(1*ms, server("inner")), starts="down"))],
              panic=0.0, health=health.http("/", interval="20ms", timeout="150ms", fall=1, rise=1))"#,
        2,
    );
    until("only the slow one is left", || (0..10).all(|_| x.get().body == "slow\n"));
}

#[test]
fn a_check_costs_what_the_file_says() {
    let x = serve(
        r#"x = lb.random([server("s", model=dist.fixed(0*ms))], panic=0.0,
                   health=health.http("/", interval="20ms", timeout="60ms", cost="300ms", fall=1, rise=1))"#,
        1,
    );
    until("checks take too long", || x.get().status == 503);
}

#[test]
fn some_lie_to_checks() {
    let x = serve(
        r#"never = 1000*hours
x = lb.random([server("s", model=faulty(never, never, server("inner"), starts="down", checks="pass"))],
              on_empty=respond(404), health=health.http("/", interval="20ms", initial="checked"))"#,
        1,
    );
    // It is found well, and refuses all the same.
    until("its requests are refused", || x.get().status == 503);
}

#[test]
fn nobody_outside_makes_up_a_check() {
    let x = serve(r#"x = server("s", model=dist.fixed(200*ms))"#, 1);
    let begun = std::time::Instant::now();
    let got = x.get_with("X-Weir-Check: 0 0000000000000000\r\n");
    assert!(got.status == 200 && begun.elapsed().as_millis() >= 200);
}
