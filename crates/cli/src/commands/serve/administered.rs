//! The admin interface of what is served: [`weir_serve::Remote`] as it is asked for there.

use crate::args::Serve;
use crate::failure::Failure;
use std::path::Path;
use std::sync::Arc;
use weir_admin::{Admin, Bound, CannotStart, Options, Served};
use weir_serve::{Config, Exposition, Readiness, Remote, SetTarget, View};

/// What is served.
struct Process {
    remote: Remote,
    /// The name of the topology file.
    file: String,
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
pub(super) fn start(bound: Bound, remote: &Remote, file: &Path) -> Result<Admin, Failure> {
    let name = file.file_name().unwrap_or(file.as_os_str());
    let process = Process { remote: remote.clone(), file: name.to_string_lossy().into_owned() };
    bound.start(Arc::new(process)).map_err(not_started)
}

fn not_started(e: CannotStart) -> Failure {
    Failure::Environment(e.to_string())
}

impl Served for Process {
    fn view(&self, by_loop: bool) -> View {
        self.remote.view(by_loop)
    }

    fn file(&self) -> String {
        self.file.clone()
    }

    fn stalled(&self) -> Vec<String> {
        self.remote.stalled()
    }

    fn readiness(&self) -> Readiness {
        self.remote.readiness()
    }

    fn scrape(&self, format: Exposition) -> Vec<u8> {
        self.remote.scrape(format)
    }

    fn config(&self) -> Config {
        self.remote.config()
    }

    fn reload(&self) -> Result<String, String> {
        self.remote.reload()
    }

    fn drain(&self) {
        self.remote.drain();
    }

    fn set_target(&self, pool: &str, target: &str, set: SetTarget) -> Result<(), String> {
        self.remote.set_target(pool, target, set)
    }
}
