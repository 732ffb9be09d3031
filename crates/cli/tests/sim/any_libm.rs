//! The same bytes with any C library: one whose `log`, `exp`, `pow`, `sin` and `cos` err in the last bit changes
//! nothing.
#![cfg(target_os = "linux")]

use crate::shared::common::{Scratch, weir};
use std::path::Path;
use std::process::Command;

/// Every distribution, and every node that draws or computes with fractions.
const ALL: &str = "\
def node(i):
    work = dist.sum(dist.exponential(3 * ms), dist.rounded(dist.erlang(3, 2 * ms), 100 * us))
    return weight(1 + i % 3, faulty(2 * s, 100 * ms, cable(1 * ms, queue(delay(work, server(\"app\"))))))

targets = pool(6, node)

def run(name, node, gap):
    scenario(name, retry(3, node), traffic.renewal(gap), requests = 5000)

run(\"random\", lb.random(targets), dist.exponential(4 * ms))
run(\"two\", lb.p2c(targets, bias = 1.3), dist.lognormal(4 * ms, 1.5))
run(\"least\", lb.least_conn(targets), dist.pareto(2 * ms, 2.2))
run(\"turns\", lb.round_robin(targets), dist.hyperexponential([(0.9, 2 * ms), (0.1, 20 * ms)]))
run(\"uniform\", targets[0], dist.uniform(10 * ms, 30 * ms))
run(\"empirical\", targets[1], dist.empirical([10 * ms, 20 * ms, 35 * ms]))
scenario(\"poisson\", lb.least_conn(targets, ties = \"rotate\"), traffic.poisson(rate = 300), requests = 5000)
";

/// Whether there is a C compiler, and it did that.
fn compiles(arguments: &[&str]) -> bool {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/last_bit.c");
    Command::new("cc")
        .args(["-O1", "-fno-builtin"])
        .args(arguments)
        .arg(source)
        .arg("-lm")
        .status()
        .is_ok_and(|s| s.success())
}

#[test]
fn a_mathematical_library_that_errs_changes_no_byte() {
    let scratch = Scratch::new("libm");
    let (library, probe) = (scratch.path("last_bit.so"), scratch.path("probe"));
    if Command::new("cc").arg("--version").output().is_err() {
        eprintln!("skipped: there is no `cc` to compile tests/data/last_bit.c with");
        return;
    }
    assert!(compiles(&["-shared", "-fPIC", "-o", &library]) && compiles(&["-DPROBE", "-o", &probe]));
    let out = |command: &mut Command, preload: Option<&str>| {
        command.envs(preload.map(|p| ("LD_PRELOAD", p)));
        let output = command.output().expect("it starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let honest = out(&mut Command::new(&probe), None);
    let erring = out(&mut Command::new(&probe), Some(&library));
    assert!(
        honest.split_whitespace().zip(erring.split_whitespace()).all(|(a, b)| a != b),
        "the library is not in effect: {honest} {erring}"
    );

    let file = scratch.file("all.star", ALL);
    let page = scratch.path("page.html");
    let simulate = |preload| {
        let result = out(weir().args(["sim", &file, "--output", "json", "--html", &page]), preload);
        (result, std::fs::read_to_string(&page).expect("the page was written"))
    };
    let result = simulate(None);
    assert!(result.0.contains("\"name\": \"poisson\""));
    assert!(result == simulate(Some(&library)), "the result depends on the C library's last bits");
}
