//! The admin interface of what is served: [`weir_serve::Remote`] as it is asked for there.

use crate::args::Serve;
use crate::failure::Failure;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use weir_admin::{Admin, Bound, CannotStart, Config, Exposition, Options, Refused, Served, SetTarget};
use weir_serve::{Readiness, Remote, View};
use weir_topology::Plan;
use weir_topology::plan::Point;

/// What is served.
struct Process {
    remote: Remote,
    file: String,
    plan: String,
    at_unix_ms: u64,
}

/// The sockets that are asked for; before anything is served, so that what is wrong with them is said first.
pub(super) fn bind(args: &Serve) -> Result<Option<Bound>, Failure> {
    let options = Options {
        admin: args.admin.clone(),
        control: args.control.clone(),
        hosts: args.admin_host.clone(),
        token: args.admin_token.clone(),
    };
    options.bind().map_err(not_started)
}

/// Begins to answer.
pub(super) fn start(bound: Bound, remote: &Remote, plan: &Plan) -> Result<Admin, Failure> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let process = Process {
        remote: remote.clone(),
        file: plan.file.clone(),
        plan: plan.hash.clone(),
        at_unix_ms: since.as_millis() as u64,
    };
    bound.start(Arc::new(process)).map_err(not_started)
}

fn not_started(e: CannotStart) -> Failure {
    Failure::Environment(e.to_string())
}

impl Served for Process {
    fn view(&self, by_loop: bool) -> View {
        self.remote.view(by_loop)
    }

    fn point(&self) -> Arc<Point> {
        self.remote.point()
    }

    fn stalled(&self) -> Vec<String> {
        self.remote.stalled()
    }

    fn readiness(&self) -> Readiness {
        self.remote.readiness()
    }

    fn scrape(&self, _format: Exposition) -> Result<Vec<u8>, Refused> {
        Err(Refused::NotBuilt)
    }

    fn config(&self) -> Config {
        let (file, plan) = (self.file.clone(), self.plan.clone());
        Config { file, plan, at_unix_ms: self.at_unix_ms, ..Config::default() }
    }

    fn reload(&self) -> Result<String, Refused> {
        Err(Refused::NotBuilt)
    }

    fn drain(&self) {
        self.remote.drain();
    }

    fn set_target(&self, _pool: &str, _target: &str, _set: SetTarget) -> Result<(), Refused> {
        Err(Refused::NotBuilt)
    }
}
