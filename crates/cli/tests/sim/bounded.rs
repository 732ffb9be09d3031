//! What is huge stays within bounds: memory, numbers of replications, and the time until an interrupt is heard; and
//! what will take long is announced.

use crate::shared::common;
use crate::shared::common::{Scratch, run, weir};
use std::process::Stdio;
use std::time::Instant;

/// Ten billion keys are no table.
#[test]
fn keys_beyond_counting_take_no_memory() {
    let scratch = Scratch::new("zipf");
    let file = scratch.file(
        "zipf.star",
        "traffic_of = traffic.mix(traffic.poisson(rate=100), [(1, request(key=keys.zipf(10000000000, 1.1)))])\n\
         scenario(\"x\", lb.ring_hash(pool(3, lambda: delay(5*ms, server())), key=key.client()), traffic_of, requests=2000)\n",
    );
    let ran = run(&["sim", &file, "--replications", "2", "--output", "json"]);
    assert!(ran.succeeds().contains("\"selected\": 2000"), "{}", ran.out);
}

/// Many short replications take time in proportion to their number: what is done once for each replication and each of
/// the others would take minutes here.
#[test]
fn many_replications_are_gathered_one_by_one() {
    let scratch = Scratch::new("replications");
    let file = scratch.file(
        "short.star",
        "scenario(\"x\", delay(1*us, server()), traffic.constant(every=1*us), requests=4, window=\"all\")\n",
    );
    let began = Instant::now();
    let ran = run(&["sim", &file, "--replications", "80000", "--output", "json"]);
    assert!(ran.succeeds().contains("\"total\": 320000"));
    println!("80000 replications in {:?}", began.elapsed());
}

/// While arrivals are counted beforehand nothing else runs yet, and an interrupt is heard.
#[cfg(target_os = "linux")]
#[test]
fn an_interrupt_is_heard_while_arrivals_are_counted() {
    let scratch = Scratch::new("counting");
    let file = scratch.file(
        "long.star",
        "scenario(\"x\", server(), traffic.poisson(rate=1000000), duration=100000*hours)\n",
    );
    let child = weir()
        .args(["sim", &file, "--threads", "1", "--output", "json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    common::works(&child);
    common::interrupt(&child);
    // Counted to the end it would take months.
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130));
}

/// Nor is there anything to wait for while a file is evaluated, and nothing goes on afterwards.
#[cfg(target_os = "linux")]
#[test]
fn an_interrupt_ends_an_evaluation() {
    let scratch = Scratch::new("evaluating");
    let file = scratch.file("long.star", "x = [i * j for i in range(100000) for j in range(100000)]\n");
    for command in ["sim", "check", "plan"] {
        let child = weir().args([command, &file]).stderr(Stdio::piped()).spawn().expect("the binary starts");
        let evaluates = || {
            let children = format!("/proc/{0}/task/{0}/children", child.id());
            std::fs::read_to_string(children).ok().and_then(|pids| pids.trim().parse::<u32>().ok())
        };
        let until = |what: &dyn Fn() -> bool| {
            let began = Instant::now();
            while !what() && began.elapsed().as_secs() < 20 {
                std::thread::yield_now();
            }
        };
        until(&|| evaluates().is_some());
        let evaluating = evaluates().expect("a child that evaluates");
        common::interrupt(&child);
        assert_eq!(child.wait_with_output().expect("it ends").status.code(), Some(130), "{command}");
        let gone = || !std::fs::exists(format!("/proc/{evaluating}/fd/0")).unwrap_or(false);
        until(&gone);
        assert!(gone(), "{command}: it still evaluates");
    }
}

/// Very many requests, and attempts that multiply, are announced by `check`; what is done in a minute is not.
#[test]
fn check_announces_what_takes_long() {
    let scratch = Scratch::new("long");
    let says = |node: &str, requests: &str| {
        let file = scratch
            .file("x.star", format!("scenario(\"x\", {node}, traffic.poisson(rate=1000), {requests})\n"));
        run(&["check", &file]).succeeds().to_owned()
    };
    let many = says("server()", "requests=10000000000");
    assert!(
        many.contains("takes long: scenario \"x\" sends 10 000 000 000 requests in each of 10"),
        "{many}"
    );
    assert!(says("server()", "duration=1000*hours").contains("takes long"));
    let multiplied = says("retry(1000, retry(1000, flaky(0.5, server())))", "requests=1000");
    assert!(multiplied.contains("may take long"), "{multiplied}");
    assert!(!says("server()", "requests=100000").contains("long"));
}

/// An interrupt is heard soon in every phase: inside one instant, in catching up with a timeline, among stays of a
/// traffic that sends nothing, and where what was simulated is gone through again. None of these would end in a day.
#[cfg(target_os = "linux")]
#[test]
fn an_interrupt_is_heard_in_every_phase() {
    let scratch = Scratch::new("phases");
    let doubled = "def f():\n    x = delay(1*ns, server())\n    for i in range(40):\n        x = sequence([x, x])\n    return x\n";
    let slow = "traffic.poisson(rate=1), requests=1000000";
    for (node, traffic, more) in [
        ("f()", "traffic.poisson(rate=10), requests=10", &[][..]),
        ("faulty(1*ns, 1*ns, server())", slow, &[]),
        ("faulty(1*ns, 1*ns, server())", slow, &["--explain", "--precision", "1%"]),
        ("faulty(1*ns, 1*ns, server(), together=\"a\")", slow, &[]),
        ("faulty(1*ns, 1*ns, server(model=1*ms), mode=\"pause\")", slow, &[]),
        ("faulty(1*ns, 1*ns, server())", "traffic.poisson(rate=1), requests=1000000, window=\"auto\"", &[]),
        ("server()", "traffic.mmpp([(0.001, 1*ns), (0.002, 1*ns)]), duration=100*hours", &[]),
        ("server()", "traffic.mmpp([(0.001, 1*ns), (0.002, 1*ns)]), requests=1000", &[]),
    ] {
        let file = scratch.file("long.star", format!("{doubled}scenario(\"x\", {node}, {traffic})\n"));
        let child = weir()
            .args(["sim", &file, "--output", "json"])
            .args(more)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        common::works(&child);
        common::interrupt(&child);
        let began = Instant::now();
        let output = child.wait_with_output().expect("it ends");
        println!("{node}: {:?}", began.elapsed());
        assert_eq!(output.status.code(), Some(130), "{node}");
        assert!(String::from_utf8_lossy(&output.stdout).contains("\"interrupted\": true"), "{node}");
        // Half a second, on a machine that has time.
        assert!(began.elapsed().as_secs() < 5, "{node}");
    }
}

/// A file that is loaded is read up to its limit; a device or a pipe is not read at all.
#[cfg(target_os = "linux")]
#[test]
fn what_is_loaded_is_read_up_to_a_limit() {
    let scratch = Scratch::new("loads");
    let big = std::fs::File::create(scratch.path("big.star")).expect("a file");
    big.set_len(300 << 20).expect("it is sparse");
    std::process::Command::new("mkfifo").arg(scratch.path("pipe.star")).status().expect("mkfifo runs");
    for (name, says) in [
        ("big.star", "it is larger than 16 MiB"),
        ("/dev/zero", "it is not a regular file"),
        ("pipe.star", "it is not a regular file"),
        (".", "it is not a regular file"),
        ("none.star", "no such file"),
    ] {
        let file = scratch.file("main.star", format!("load(\"{name}\", \"x\")\n"));
        run(&["check", &file]).fails(2, says);
    }
    let file = scratch.file("main.star", "x = dist.empirical(\"pipe.star\")\n");
    run(&["check", &file]).fails(2, "is not a regular file");
}

/// What a chain of nodes costs grows with its length, not with its square: forty thousand took a minute.
#[test]
fn a_deep_chain_is_summed_up_in_one_pass() {
    let scratch = Scratch::new("chain");
    let file = scratch.file(
        "chain.star",
        "def f():\n    x = server()\n    for i in range(40000):\n        x = delay(1*ns, x)\n    return x\n\
         scenario(\"x\", f(), traffic.poisson(rate=10), requests=10)\n",
    );
    let began = Instant::now();
    run(&["sim", &file, "-q", "--replications", "2"]).succeeds();
    assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
}
