//! Evaluation in a child: this program is its own child, so it has no harness.

use std::process::ExitCode;
use weir_topology::sandbox::{CHILD, Failure, child_main, evaluate_in_child};
use weir_topology::{Evaluated, Request, evaluate};

fn main() -> ExitCode {
    if std::env::args().nth(1).is_some_and(|a| a == CHILD) {
        return child_main();
    }
    same_as_in_process();
    past_a_limit();
    println!("sandbox: ok");
    ExitCode::SUCCESS
}

fn request(source: &str) -> Request {
    Request { name: "t.star".to_owned(), source: source.as_bytes().to_vec(), ..Request::default() }
}

fn child(source: &str) -> Result<Evaluated, Failure> {
    evaluate_in_child(&request(source), &std::env::current_exe().expect("this program"))
}

fn same_as_in_process() {
    for source in [
        "",
        "x = pool(1000, lambda: cable(1*ms, server()))\nscenario(\"a\", lb.random(x), traffic.poisson(rate=1.5), requests=5)\n",
        "x = cable(5, server())\n",
    ] {
        match (child(source), evaluate(&request(source))) {
            (Ok(there), Ok(here)) => assert_eq!(there, here),
            (Err(Failure::Wrong(there)), Err(here)) => assert_eq!(there, here),
            other => panic!("{source}: {other:?}"),
        }
    }
}

/// Each dies in its own way, by a limit of the child's own, and names the file.
fn past_a_limit() {
    let memory = "evaluating t.star needs more than 1 GiB of memory";
    let deep = "t.star is nested too deeply to be evaluated";
    let parens = format!("x = {}1{}\n", "(".repeat(100_000), ")".repeat(100_000));
    for (source, wanted) in [
        ("x = [0] * 1000000000\n", memory),
        ("x = \"a\"\nfor i in range(40):\n    x = x + x\n", memory),
        ("x = sorted(range(1 << 30))\n", memory),
        (parens.as_str(), deep),
        (
            "def f():\n    for i in range(1 << 30):\n        pass\nf()\n",
            "the file takes more than 100 million steps",
        ),
        (
            "x = 10\nfor i in range(60):\n    x = x * x\n",
            "evaluating t.star takes more than 5 s of processor time",
        ),
    ] {
        let Err(Failure::Wrong(findings)) = child(source) else { panic!("{wanted}: not refused") };
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert_eq!(findings[0].message, wanted);
    }
}
