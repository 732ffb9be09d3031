//! `weir admin ...`: queries and changes a running weir, through its control socket or its admin address.

use crate::args::{Admin, AdminCommand, ReportFormat, SetTarget};
use crate::failure::Failure;
use crate::output::to_stdout;
use serde_json::Value;
use weir_admin::client::{self, CannotAsk, Client, DEFAULT_URL, Endpoint, Reply};

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
    wanted.extend(set.weight.map(|weight| ("weight".to_owned(), weight.into())));
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
        Failure::Environment(format!("the answer to {path} is not from a weir of this version: {e}"))
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
