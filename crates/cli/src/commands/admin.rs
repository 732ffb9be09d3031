//! `weir admin ...`: queries and changes a running weir, through its control socket or its admin address.

use crate::args::ReportFormat;
use crate::failure::Failure;
use crate::output::to_stdout;
use clap::{Args, Subcommand};
use serde_json::Value;
use std::path::PathBuf;
use weir_admin::client::{self, CannotAsk, Client, DEFAULT_URL, Endpoint, Reply};

/// `weir admin`.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  weir admin status                                what is running, and any problems
  weir admin targets --control /run/weir.sock      every target with its state and the reason
  weir admin set apps 10.0.0.1:80 --state drain --for 10m --control /run/weir.sock
  weir admin reload --url http://127.0.0.1:9901 --token admin.token

POOL is the name of a balancer, TARGET that of a target, as in `targets` (of a server without a name its
address); a site means all its members. The default address changes nothing without --token.
State and weight are two settings: each holds for its own `--for`, or until `--state file` or `--weight file`
takes it back. A weight is 0, or from 0.001 to 1000000. Exit code 1: weir refused; 3: no weir answered.")]
pub(crate) struct Admin {
    /// What to do
    #[command(subcommand)]
    pub(crate) deed: AdminCommand,
    /// The socket of `weir serve --control`
    #[arg(long, global = true, value_name = "PATH", conflicts_with = "url")]
    pub(crate) control: Option<PathBuf>,
    /// The address of `weir serve --admin` [default: http://127.0.0.1:9901]
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// File with the token for changes at a URL
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) token: Option<PathBuf>,
    /// Format of the result on standard output
    #[arg(
        long,
        global = true,
        value_name = "text|json",
        default_value = "text",
        hide_possible_values = true
    )]
    pub(crate) output: ReportFormat,
}

/// What `weir admin` does.
#[derive(Subcommand, Debug)]
pub(crate) enum AdminCommand {
    /// Show what is running, and any problems
    Status,
    /// List every target with its address, state, last check and the reason
    Targets,
    /// Read the file again, and serve it if it has no errors
    Reload,
    /// Start the program anew, which takes over from this process, as SIGUSR2 does
    Upgrade,
    /// Drain and stop, as SIGTERM does
    Drain,
    /// Set a target's state or weight by hand
    Set(SetTarget),
}

/// `weir admin set`.
#[derive(Args, Debug)]
#[command(group(clap::ArgGroup::new("what").required(true).multiple(true).args(["state", "weight"])))]
pub(crate) struct SetTarget {
    /// The balancer
    #[arg(value_name = "POOL")]
    pub(crate) pool: String,
    /// Its target
    #[arg(value_name = "TARGET")]
    pub(crate) target: String,
    /// Whether it gets requests; `file`: by its health, as without a setting
    #[arg(long, value_name = "up|drain|eject|file", value_parser = ["up", "drain", "eject", "file"], hide_possible_values = true)]
    pub(crate) state: Option<String>,
    /// Another weight; `file`: that of the file again
    #[arg(long, value_name = "WEIGHT|file", value_parser = weight)]
    pub(crate) weight: Option<Value>,
    /// For how long: 30s, 5m [default: until it is taken back]
    #[arg(long = "for", value_name = "D")]
    pub(crate) lasts: Option<String>,
}

/// A number, or the word `file`; the running weir checks the rest.
fn weight(text: &str) -> Result<Value, String> {
    match text.parse::<f64>() {
        _ if text == "file" => Ok(text.into()),
        Ok(weight) if weight.is_finite() => Ok(weight.into()),
        _ => Err("write a number, or `file`".to_owned()),
    }
}

pub(crate) fn run(args: &Admin) -> Result<(), Failure> {
    let at = match (&args.control, &args.url) {
        (Some(path), _) => Endpoint::Unix(path.clone()),
        (None, url) => {
            Endpoint::url(url.as_deref().unwrap_or(DEFAULT_URL)).map_err(|e| Failure::Usage(e.to_string()))?
        }
    };
    let client = Client::new(at, args.token.as_deref()).map_err(unanswered)?;
    let as_json = args.output == ReportFormat::Json;
    match &args.deed {
        AdminCommand::Status if as_json => print(&good(get(&client, "/topology")?)?.body),
        AdminCommand::Status => {
            let (topology, config) = (json(&client, "/topology")?, json(&client, "/config")?);
            let ready = get(&client, "/ready")?.sentence();
            print(&client::status(&topology, &config, &ready))
        }
        AdminCommand::Targets if as_json => {
            let topology = json(&client, "/topology")?;
            print(&format!("{:#}\n", topology["pools"]))
        }
        AdminCommand::Targets => print(&client::targets(&json(&client, "/topology")?)),
        AdminCommand::Reload => changed(post(&client, "/reload", String::new())?, as_json),
        AdminCommand::Upgrade => changed(post(&client, "/upgrade", String::new())?, as_json),
        AdminCommand::Drain => changed(post(&client, "/drain", String::new())?, as_json),
        AdminCommand::Set(set) => {
            let path = Client::path_of(&set.pool, &set.target);
            changed(post(&client, &path, wanted(set).to_string())?, as_json)
        }
    }
}

fn wanted(set: &SetTarget) -> Value {
    let mut wanted = serde_json::Map::new();
    wanted.extend(set.state.clone().map(|state| ("state".to_owned(), state.into())));
    wanted.extend(set.weight.clone().map(|weight| ("weight".to_owned(), weight)));
    wanted.extend(set.lasts.clone().map(|lasts| ("for".to_owned(), lasts.into())));
    Value::Object(wanted)
}

fn unanswered(e: CannotAsk) -> Failure {
    Failure::Environment(e.to_string())
}

fn get(client: &Client, path: &str) -> Result<Reply, Failure> {
    client.get(path).map_err(unanswered)
}

fn post(client: &Client, path: &str, body: String) -> Result<Reply, Failure> {
    client.post(path, body).map_err(unanswered)
}

fn good(reply: Reply) -> Result<Reply, Failure> {
    if reply.is_good() { Ok(reply) } else { Err(Failure::No(reply.sentence())) }
}

fn json(client: &Client, path: &str) -> Result<Value, Failure> {
    let reply = good(get(client, path)?)?;
    serde_json::from_str(&reply.body).map_err(|e| {
        Failure::Environment(format!("the answer to {path} is not that of a weir of this version: {e}"))
    })
}

/// Prints the result of a change.
fn changed(reply: Reply, as_json: bool) -> Result<(), Failure> {
    let reply = good(reply)?;
    print(&if as_json { reply.body } else { reply.sentence() + "\n" })
}

fn print(text: &str) -> Result<(), Failure> {
    to_stdout(|out| out.write_all(text.as_bytes()))
}
