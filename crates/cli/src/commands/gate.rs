//! `weir gate`: beside an application, in front of whose balancers it answers health checks.

use crate::args::{InvalidValue, ReportFormat};
use crate::failure::Failure;
use crate::output;
use clap::{Args, ValueEnum};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io::Write;
use std::time::Duration;
use weir_gate::{AskerKey, CannotStart, LogFormat, OpenGate, Options, Question, Url, WorkOptions};
use weir_plan::address::Address;
use weir_plan::duration::parse_duration;
use weir_policy::gate::Flap;

/// `weir gate`.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  weir gate --for http://127.0.0.1:8080/health --listen :8081
  weir gate --for unix:/run/app.sock:/health --listen :8081 --agent :8082
  weir gate --for http://127.0.0.1:8080/health --listen :8081 \\
    --min-requests 10 --requests-from http://127.0.0.1:8080/metrics
  weir gate --dry-run 10.0.0.1 10.0.0.2 10.0.0.3@20s --id web-7

Balancers check the gate instead of the application. While that is not healthy
they are answered 503. From when it is first healthy a growing share of them is
answered 200, and all are after --ramp: a balancer with many nodes lets a cold
application in by and by. An asker that was let in stays so; two applications
let askers in in different orders.

Any path is a check, but for /gate/status (JSON), /gate/metrics and /gate/live.
Prints `listening gate ADDRESS` once it answers. SIGTERM and SIGINT turn all
away for --linger, then the exit code is 0; a second one ends it at once.")]
pub(crate) struct GateCommand {
    /// The application's own check: http://, https:// or unix:/SOCKET:/PATH
    #[arg(long = "for", value_name = "URL", value_parser = url, required_unless_present = "dry_run", conflicts_with = "dry_run")]
    url: Option<Url>,
    /// Where to answer checks: :8081, 127.0.0.1:8081; may be repeated
    #[arg(long, value_name = "ADDRESS", value_parser = address, required_unless_present = "dry_run")]
    listen: Vec<ListenAddress>,
    /// Also answer HAProxy's agent checks at this address
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    agent: Option<ListenAddress>,
    /// From the first healthy answer until every asker is let in; 0s: at once
    #[arg(long, value_name = "D", default_value = "60s", value_parser = duration)]
    ramp: Duration,
    /// How askers are let in: evenly, or as the article's code does
    #[arg(long, value_name = "even|article", default_value = "even", hide_possible_values = true)]
    flap: FlapName,
    /// By what an asker is known: its address, or a field of its check
    #[arg(long, value_name = "peer|header:NAME", default_value = "peer", value_parser = key)]
    key: KeyName,
    /// The application's name [default: the host's, `/`, HOST:PORT of --for]
    #[arg(long, value_name = "TEXT")]
    id: Option<String>,
    /// How often to ask the application
    #[arg(long, value_name = "D", default_value = "1s", value_parser = period)]
    interval: Duration,
    /// How long its answer may take
    #[arg(long, value_name = "D", default_value = "1s", value_parser = period)]
    timeout: Duration,
    /// Statuses of a healthy application
    #[arg(long, value_name = "STATUSES", default_value = "200-399", value_parser = statuses)]
    expect: Statuses,
    /// Turn all away if fewer requests came in since an asker's last check
    #[arg(long, value_name = "N", requires = "requests_from", value_parser = clap::value_parser!(u64).range(1..))]
    min_requests: Option<u64>,
    /// Page of metrics that counts requests, and the family in it
    #[arg(long, value_name = "URL[#FAMILY]", requires = "min_requests", value_parser = counter)]
    requests_from: Option<Counter>,
    /// The other gates: judge only if they have four times as many requests
    #[arg(long, value_name = "HOST:PORT", requires = "min_requests", value_parser = peers)]
    peers: Option<String>,
    /// No judgement for so long from the beginning
    #[arg(long, value_name = "D", default_value = "60s", value_parser = duration)]
    grace: Duration,
    /// How long to turn all away the first time
    #[arg(long, value_name = "D", default_value = "30s", value_parser = period)]
    hold: Duration,
    /// How long at most: it doubles each time in a row
    #[arg(long, value_name = "D", default_value = "300s", value_parser = period)]
    max_hold: Duration,
    /// How long to turn all away before the end
    #[arg(long, value_name = "D", default_value = "0s", value_parser = duration)]
    linger: Duration,
    /// Form of the log on standard error
    #[arg(long, value_name = "text|json|none", default_value = "text", hide_possible_values = true)]
    log: LogName,
    /// Say when these askers are let in, or what they are answered at @TIME
    #[arg(long, value_name = "PEER[@TIME]", num_args = 1.., value_parser = question, conflicts_with_all = ["agent", "min_requests"])]
    dry_run: Vec<Question>,
    /// Format of --dry-run on standard output [default: text]
    #[arg(long, value_name = "text|json", hide_possible_values = true)]
    output: Option<ReportFormat>,
}

/// An address with its text.
#[derive(Clone, Debug)]
struct ListenAddress {
    text: String,
    address: Address,
}

/// Ranges of statuses.
#[derive(Clone, Debug)]
struct Statuses(Vec<(u16, u16)>);

/// A page and the family of metrics in it.
#[derive(Clone, Debug)]
struct Counter {
    url: Url,
    family: Option<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum FlapName {
    Even,
    Article,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum LogName {
    Text,
    Json,
    None,
}

#[derive(Clone, Debug)]
struct KeyName(AskerKey);

pub(crate) fn run(args: &GateCommand) -> Result<(), Failure> {
    let flap = args.flap();
    if matches!(flap, Flap::Article) && args.ramp < Duration::from_secs(1) {
        return Err(Failure::Usage(
            "the article counts whole seconds: --ramp must be 1s or more with --flap article".to_owned(),
        ));
    }
    if !args.dry_run.is_empty() {
        return args.predict(flap);
    }
    if args.output.is_some() {
        return Err(Failure::Usage(
            "--output is the form of what --dry-run prints; --log is that of the log".to_owned(),
        ));
    }
    let bound = weir_gate::bind(args.options(flap)?).map_err(not_started)?;
    obey_signals(&bound)?;
    {
        let mut out = std::io::stdout().lock();
        for line in &bound.listening {
            // Answering does not depend on an open output.
            let _ = writeln!(out, "{line}").and_then(|()| out.flush());
        }
    }
    bound.run();
    Ok(())
}

fn not_started(e: CannotStart) -> Failure {
    match e {
        CannotStart::Tls(_) => Failure::Usage(e.to_string()),
        _ => Failure::Environment(e.to_string()),
    }
}

/// SIGTERM and SIGINT end the gate after `--linger`, a second one at once.
fn obey_signals(bound: &OpenGate) -> Result<(), Failure> {
    let failed = |e: std::io::Error| {
        Failure::Environment(format!("cannot wait for signals: {}", crate::failure::reason(&e)))
    };
    let (mut signals, stopper) = (Signals::new([SIGTERM, SIGINT]).map_err(failed)?, bound.stopper());
    let thread = std::thread::Builder::new().name("weir-signals".to_owned());
    thread.spawn(move || signals.forever().for_each(|_| stopper.stop())).map_err(failed)?;
    Ok(())
}

impl GateCommand {
    fn flap(&self) -> Flap {
        match self.flap {
            FlapName::Even => Flap::Even,
            FlapName::Article => Flap::Article,
        }
    }

    fn ramp(&self) -> Option<Duration> {
        Some(self.ramp).filter(|ramp| !ramp.is_zero())
    }

    fn predict(&self, flap: Flap) -> Result<(), Failure> {
        let predictions = weir_gate::predict(&self.dry_run, self.ramp(), flap, self.id.as_deref());
        let text = match self.output.unwrap_or(ReportFormat::Text) {
            ReportFormat::Text => weir_gate::predictions_text(&predictions),
            ReportFormat::Json => weir_gate::predictions_json(&predictions),
        };
        output::to_stdout(|out| out.write_all(text.as_bytes()))
    }

    fn options(&self, flap: Flap) -> Result<Options, Failure> {
        let Some(url) = self.url.clone() else {
            return Err(Failure::Usage("--for is missing: the application's own check".to_owned()));
        };
        self.refuse_collisions()?;
        let work = match (self.min_requests, &self.requests_from) {
            (Some(min_requests), Some(Counter { url, family })) => Some(WorkOptions {
                min_requests,
                from: url.clone(),
                family: family.clone(),
                peers: self.peers.clone(),
                grace: self.grace,
                hold: self.hold,
                max_hold: self.max_hold,
            }),
            _ => None,
        };
        let written = |at: &ListenAddress| (at.text.clone(), at.address.clone());
        Ok(Options {
            url,
            listen: self.listen.iter().map(written).collect(),
            agent: self.agent.as_ref().map(written),
            ramp: self.ramp(),
            flap,
            key: self.key.0.clone(),
            id: self.id.clone(),
            interval: self.interval,
            timeout: self.timeout,
            expect: self.expect.0.clone(),
            work,
            linger: self.linger,
            log: match self.log {
                LogName::Text => LogFormat::Text,
                LogName::Json => LogFormat::Json,
                LogName::None => LogFormat::None,
            },
        })
    }

    /// Two listeners cannot have one port.
    fn refuse_collisions(&self) -> Result<(), Failure> {
        let all: Vec<&ListenAddress> = self.listen.iter().chain(&self.agent).collect();
        for (at, one) in all.iter().enumerate() {
            if let Some(other) =
                all.iter().skip(at + 1).find(|other| one.address.competes_with(&other.address))
            {
                let ListenAddress { text, .. } = other;
                return Err(Failure::Usage(format!(
                    "{} and {text} want one port; give each listener its own",
                    one.text
                )));
            }
        }
        Ok(())
    }
}

fn url(text: &str) -> Result<Url, InvalidValue> {
    Url::parse(text).map_err(|e| e.to_string().into())
}

fn address(text: &str) -> Result<ListenAddress, InvalidValue> {
    match Address::parse(text) {
        None => Err("write :8081, 127.0.0.1:8081 or [::1]:8081".into()),
        Some(Address::Unix(_)) => {
            Err("a gate knows its askers by address, and a Unix socket has none; write :8081".into())
        }
        Some(address) => Ok(ListenAddress { text: text.to_owned(), address }),
    }
}

fn duration(text: &str) -> Result<Duration, InvalidValue> {
    let ns = parse_duration(text).map_err(|e| e.to_string())?;
    u64::try_from(ns).map(Duration::from_nanos).map_err(|_| "a duration is 0 or more".into())
}

/// A time that is not 0.
fn period(text: &str) -> Result<Duration, InvalidValue> {
    match duration(text)? {
        time if time < Duration::from_millis(1) => Err("write 1ms or more".into()),
        time => Ok(time),
    }
}

fn key(text: &str) -> Result<KeyName, InvalidValue> {
    match text.split_once(':') {
        None if text == "peer" => Ok(KeyName(AskerKey::Peer)),
        Some(("header", name)) if weir_plan::http::field_name(name).is_ok() => {
            Ok(KeyName(AskerKey::Header(name.to_ascii_lowercase())))
        }
        Some(("header", _)) => Err("it is not the name of a field; write header:X-Forwarded-For".into()),
        _ => Err("write peer or header:NAME".into()),
    }
}

fn statuses(text: &str) -> Result<Statuses, InvalidValue> {
    let status = |text: &str| text.parse().ok().filter(|status| (100..=599).contains(status));
    let range = |part: &str| {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        let (low, high) = (status(low.trim())?, status(high.trim())?);
        (low <= high).then_some((low, high))
    };
    let ranges: Option<Vec<(u16, u16)>> = text.split(',').map(range).collect();
    ranges.map(Statuses).ok_or_else(|| "write statuses from 100 to 599: 200, 200-399, 200,404".into())
}

fn counter(text: &str) -> Result<Counter, InvalidValue> {
    let (url, family) = match text.split_once('#') {
        Some((_, "")) => return Err("the family behind # is missing".into()),
        Some((url, family)) => (url, Some(family.to_owned())),
        None => (text, None),
    };
    Ok(Counter { url: Url::parse(url).map_err(|e| e.to_string())?, family })
}

fn peers(text: &str) -> Result<String, InvalidValue> {
    match Address::parse(text) {
        Some(Address::Ip(_) | Address::Name(..)) => Ok(text.to_owned()),
        _ => Err("write HOST:PORT, a name of all gates and their port".into()),
    }
}

fn question(text: &str) -> Result<Question, InvalidValue> {
    let question = |peer: &str, at| Question { peer: peer.to_owned(), at };
    match text.rsplit_once('@') {
        None => Ok(question(text, None)),
        Some((peer, time)) => duration(time).map(|at| question(peer, Some(at))),
    }
}
