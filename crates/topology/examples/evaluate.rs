//! Evaluates a topology file as the command line does and prints what comes of it: a tool to try the crate with.
//!
//! `cargo run -p weir-topology --example evaluate -- FILE [-p k=v]... [--sweep k=a,b]... [--json]`

use std::process::ExitCode;
use std::time::Instant;
use weir_plan::{Point, offered_load};
use weir_topology::Request;
use weir_topology::sandbox::{CHILD, child_main, evaluate_in_child};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().is_some_and(|a| a == CHILD) {
        return child_main();
    }
    let (request, json) = parse(args);
    let start = Instant::now();
    let Ok(exe) = std::env::current_exe() else { return ExitCode::from(3) };
    let result = evaluate_in_child(&request, &exe);
    let took = start.elapsed();
    match result {
        Err(failure) => {
            eprintln!("{failure}\n[{took:?}]");
            ExitCode::from(2)
        }
        Ok(done) => {
            done.warnings.iter().for_each(|w| eprintln!("{w}"));
            done.plan.points.iter().for_each(print_point);
            if json {
                print!("{}", String::from_utf8_lossy(&done.plan.to_json()));
            }
            eprintln!("hash {} [{took:?}]", done.plan.hash);
            ExitCode::SUCCESS
        }
    }
}

/// What the arguments ask for, and whether the plan is to be printed as JSON.
fn parse(args: Vec<String>) -> (Request, bool) {
    let mut request = Request::default();
    let mut json = false;
    let mut rest = args.into_iter();
    while let Some(arg) = rest.next() {
        let pair = |text: Option<String>| {
            text.and_then(|t| t.split_once('=').map(|(k, v)| (k.to_owned(), v.to_owned())))
                .unwrap_or_default()
        };
        match arg.as_str() {
            "-p" => request.params.push(pair(rest.next())),
            "--sweep" => {
                let (name, values) = pair(rest.next());
                request.sweeps.push((name, values.split(',').map(str::to_owned).collect()));
            }
            "--json" => json = true,
            file => {
                request.name = file.to_owned();
                request.path = Some(file.into());
                request.source = std::fs::read(file).unwrap_or_default();
            }
        }
    }
    (request, json)
}

/// Prints the size of a point, and the load that each scenario offers to its queues.
fn print_point(point: &Point) {
    eprintln!(
        "{:?}: {} nodes, {} sites, {} specs",
        point.params,
        point.nodes.len(),
        point.sites.len(),
        point.specs.len()
    );
    for (i, scenario) in point.scenarios.iter().enumerate() {
        let loads = offered_load(point, i);
        let loads: Vec<String> = loads
            .iter()
            .map(|l| format!("{} {:.3} x{}", point.sites[l.site as usize].label, l.utilisation, l.count))
            .collect();
        eprintln!("  {}: {}", scenario.name, loads.join(", "));
    }
}
