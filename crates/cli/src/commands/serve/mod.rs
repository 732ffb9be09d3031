//! `weir serve FILE [LISTENER...]`: the topology as a load balancer. This module has the checks that bind nothing;
//! `weir check --serve` runs the same ones.

mod administered;
mod args;
mod file;
mod program;
mod successor;
mod supervised;
mod upgrade;

pub(crate) use args::Serve;

use crate::failure::Failure;
use file::FromFile;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;
use std::io::Write;
use std::sync::Arc;
use upgrade::Upgrade;
use weir_plan::Plan;
use weir_plan::serving::{Serving, serving};
use weir_plan::{NodeId, Point, Spec, listeners, with_inner};
use weir_serve::{NewTopology, Predecessor, Remote, Running, Source, explain};

pub(crate) fn run(args: &Serve) -> Result<(), Failure> {
    if successor::is_between()? {
        return Ok(());
    }
    // First: a signal that arrives before anything is served is heeded after that.
    let signals = early_signals()?;
    let upgrade = Arc::new(Upgrade::new(args));
    // A child would inherit these sockets.
    let given = supervised::inherited()?;
    let source = FromFile::new(args.file(), args.inject, args.listeners.clone());
    let NewTopology { point, serving, nodes: chosen, plan, is_same_text: _, notes: _ } = source.load()?;
    let predecessor = predecessor(args)?;
    let inherited = predecessor.as_ref().map(|p| p.sockets.clone()).or_else(|| given.clone());
    if let (Some(predecessor), Some(given)) = (&predecessor, &given) {
        predecessor.sockets.join(given);
    }
    let admin = administered::bind(args, inherited.clone(), predecessor.is_some())?;
    let loops = args.loops.map(usize::from);
    let is_file = args.file.as_os_str() != "-";
    let options = weir_serve::Options {
        loops,
        quiet: args.verbosity.quiet,
        plan,
        source: is_file.then(|| Arc::new(source) as Arc<dyn Source>),
        inherited,
        generation: predecessor.as_ref().map_or(0, |before| before.generation.saturating_add(1)),
        fleets: predecessor.as_ref().map(|before| before.fleets.clone()).unwrap_or_default(),
        inject: args.inject,
        ..Default::default()
    };
    let running = weir_serve::start(&point, &serving, &chosen, &options).map_err(not_started)?;
    let spoils_logs = logs_to_stdout(&point, &chosen);
    // A reload may replace it, and it is as large as the file.
    drop((point, serving));
    let remote = running.remote();
    supervised::all_taken(given.as_ref()).inspect_err(|_| remote.abandon())?;
    let admin =
        admin.map(|bound| administered::start(bound, &remote, &args.file, upgrade.clone())).transpose()?;
    let abandon = admin.as_ref().map(weir_admin::Admin::abandon);
    obey_signals(signals, remote.clone(), upgrade, move || abandon.iter().for_each(|abandon| abandon()))
        .and_then(|()| running.check_room().map_err(|e| Failure::Environment(e.to_string())))
        .inspect_err(|_| remote.abandon())?;
    relieve(predecessor, &running, admin.as_ref());
    tell_listening(&running, admin.as_ref(), spoils_logs);
    supervised::ready(chosen.len());
    let watched = supervised::Watched::start(remote);
    let ended = running.join();
    drop(watched);
    if let Some(admin) = admin {
        admin.finish();
    }
    ended.map_err(|e| Failure::Environment(format!("an event loop stopped: {}", explain(&e))))
}

/// The process that this one replaces, if `--replace` is given and one is running.
fn predecessor(args: &Serve) -> Result<Option<Predecessor>, Failure> {
    match args.control.as_deref().filter(|_| args.replace) {
        Some(path) => Predecessor::ask(path).map_err(|e| Failure::Environment(e.to_string())),
        None => Ok(None),
    }
}

/// Ends the predecessor, since this process accepts now.
fn relieve(predecessor: Option<Predecessor>, running: &Running, admin: Option<&weir_admin::Admin>) {
    let Some(predecessor) = predecessor else { return };
    running.heed(&predecessor);
    if let Some(Err(e)) = admin.map(weir_admin::Admin::takes_path) {
        let _ = writeln!(
            std::io::stderr(),
            "warning: the control socket stays at a temporary path: {}",
            explain(&e)
        );
    }
    supervised::relieves();
    // It may have exited meanwhile.
    let _ = predecessor.relieve(&running.remote());
}

/// Why nothing is served: what the file names cannot be used, or the environment has failed.
fn not_started(e: weir_serve::Error) -> Failure {
    match e {
        weir_serve::Error::Tls(_) => Failure::Usage(e.to_string()),
        _ => Failure::Environment(e.to_string()),
    }
}

/// Whether an access log of these listeners goes to standard output.
fn logs_to_stdout(point: &Point, chosen: &[NodeId]) -> bool {
    chosen.iter().any(|id| match &point.specs[point.nodes[*id as usize].spec as usize] {
        Spec::Listen(listen) => listen.http.logs_to("stdout"),
        _ => false,
    })
}

/// Says where it listens: on standard output, unless a log goes there, whose lines it would spoil.
fn tell_listening(running: &Running, admin: Option<&weir_admin::Admin>, to_stderr: bool) {
    let mut out: Box<dyn Write> =
        if to_stderr { Box::new(std::io::stderr().lock()) } else { Box::new(std::io::stdout().lock()) };
    let listeners = running.listening.iter().map(|one| format!("listening {} {}", one.name, one.addr));
    let admin = admin.iter().flat_map(|admin| &admin.listening);
    for line in listeners.chain(admin.map(|(name, addr)| format!("{name} {addr}"))) {
        // Serving does not depend on an open output.
        let _ = writeln!(out, "{line}").and_then(|()| out.flush());
    }
}

/// Signals that would end the process if they arrived while it starts, and that are meant for later. SIGTERM and SIGINT
/// end it: nothing is served yet.
fn early_signals() -> Result<Signals, Failure> {
    Signals::new([SIGHUP, SIGUSR1, SIGUSR2]).map_err(no_signals)
}

fn no_signals(e: std::io::Error) -> Failure {
    Failure::Environment(format!("cannot wait for signals: {}", explain(&e)))
}

/// SIGTERM and SIGINT drain, a second one ends at once; SIGUSR1 reopens the logs, SIGHUP reads the file again, SIGUSR2
/// starts the program anew. `abandon`: what else must not be left behind is removed.
fn obey_signals(
    mut signals: Signals,
    remote: Remote,
    upgrade: Arc<Upgrade>,
    abandon: impl Fn() + Send + 'static,
) -> Result<(), Failure> {
    [SIGTERM, SIGINT].into_iter().try_for_each(|signal| signals.add_signal(signal)).map_err(no_signals)?;
    std::thread::Builder::new()
        .name("weir-signals".to_owned())
        .spawn(move || {
            let mut draining = false;
            for signal in signals.forever() {
                match signal {
                    SIGUSR1 => remote.reopen_logs(),
                    SIGHUP => remote.ask_reload(),
                    SIGUSR2 => {
                        // Other signals are obeyed meanwhile; what fails is in the error log.
                        let (upgrade, remote) = (upgrade.clone(), remote.clone());
                        let run = move || drop(upgrade.run(&remote));
                        let _ = std::thread::Builder::new().name("weir-upgrade".to_owned()).spawn(run);
                    }
                    _ if draining => {
                        remote.abandon();
                        abandon();
                        std::process::exit(130)
                    }
                    _ => {
                        draining = true;
                        supervised::stopping();
                        remote.drain();
                    }
                }
            }
        })
        .map(drop)
        .map_err(no_signals)
}

/// The one point of a plan, and what its nodes are when served. Hints are given to `note`.
pub(crate) fn check<'a>(
    plan: &'a Plan,
    inject: bool,
    note: &mut dyn FnMut(String),
) -> Result<(&'a Point, Serving), Failure> {
    let point = only_point(plan, "served")?;
    // What is said of members does not depend on how many a file lists now.
    let with_one = weir_plan::fleets::with_one_member(point);
    let checked = with_one.as_ref().unwrap_or(point);
    match serving(checked, inject).and_then(|checked| Ok((checked, serving(point, inject)?))) {
        Ok((checked, serving)) => {
            checked.notes.iter().for_each(|hint| note(hint.to_string()));
            Ok((point, serving))
        }
        Err(wrong) => {
            let wrong: Vec<String> = wrong.iter().map(ToString::to_string).collect();
            Err(Failure::Worded(wrong.join("\n\n")))
        }
    }
}

/// The one point of a plan; several cannot be `used` at once.
pub(crate) fn only_point<'a>(plan: &'a Plan, used: &str) -> Result<&'a Point, Failure> {
    if let [point] = plan.points.as_slice() {
        return Ok(point);
    }
    let swept = swept(plan);
    let example = swept.first().map_or(String::new(), |p| format!(", such as `-p {p}=...`"));
    Err(Failure::Usage(format!(
        "the file makes {} topologies ({} is swept), and only one can be {used}: choose it with \
            -p{example}",
        plan.points.len(),
        swept.join(", ")
    )))
}

/// Parameters that differ between points.
fn swept(plan: &Plan) -> Vec<&str> {
    let Some(first) = plan.points.first() else { return Vec::new() };
    let differs = |i: usize| plan.points.iter().any(|p| p.params.get(i) != first.params.get(i));
    first.params.iter().enumerate().filter(|(i, _)| differs(*i)).map(|(_, p)| p.0.as_str()).collect()
}

/// The listeners of these names and those behind them, all if there are none, in the order of the file.
pub(crate) fn choose(point: &Point, names: &[String]) -> Result<Vec<NodeId>, Failure> {
    let name = |id: &NodeId| point.nodes[*id as usize].name.as_deref().unwrap_or_default();
    let all = listeners(point);
    if let Some(unknown) = names.iter().find(|n| !all.iter().any(|id| name(id) == n.as_str())) {
        let known: Vec<&str> = all.iter().map(name).collect();
        return Err(Failure::Usage(format!(
            "no listener is called `{unknown}`; the file has {}",
            known.join(", ")
        )));
    }
    let chosen = all.into_iter().filter(|id| names.is_empty() || names.iter().any(|n| n == name(id)));
    Ok(with_inner(point, &chosen.collect::<Vec<_>>()))
}
