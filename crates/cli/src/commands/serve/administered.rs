//! The admin interface of the served topology: adapts [`weir_serve::Remote`] to [`weir_admin::Served`].

use super::Serve;
use super::upgrade::Upgrade;
use crate::failure::Failure;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use weir_admin::{Admin, Bound, CannotStart, Options, Service};
use weir_serve::{
    CannotSet, Config, Exposition, HAND_OVER, Inherited, Readiness, ReloadError, Remote, SetTarget, View,
};

/// The served process.
struct Process {
    remote: Remote,
    /// The name of the topology file.
    file: String,
    upgrade: Arc<Upgrade>,
}

/// Binds the requested sockets before anything is served, so that errors with them are reported first.
/// Takes over those of a predecessor, if it `replaces` one.
pub(super) fn bind(
    args: &Serve,
    inherited: Option<Arc<Inherited>>,
    replaces: bool,
) -> Result<Option<Bound>, Failure> {
    let options = Options {
        admin: args.admin.clone(),
        control: args.control.clone(),
        hosts: args.admin_host.clone(),
        token: args.admin_token.clone(),
        inherited,
        replaces,
    };
    options.bind().map_err(not_started)
}

/// Starts to answer.
pub(super) fn start(
    bound: Bound,
    remote: &Remote,
    file: &Path,
    upgrade: Arc<Upgrade>,
) -> Result<Admin, Failure> {
    let name = file.file_name().unwrap_or(file.as_os_str());
    let process = Process { remote: remote.clone(), file: name.to_string_lossy().into_owned(), upgrade };
    bound.start(Arc::new(process)).map_err(not_started)
}

fn not_started(e: CannotStart) -> Failure {
    Failure::Environment(e.to_string())
}

impl Service for Process {
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

    fn reload(&self) -> Result<String, ReloadError> {
        self.remote.reload()
    }

    fn upgrade(&self) -> Result<String, String> {
        self.upgrade.run(&self.remote)
    }

    fn drain(&self) {
        self.remote.drain();
    }

    fn set_target(&self, pool: &str, target: &str, set: SetTarget) -> Result<(), CannotSet> {
        self.remote.set_target(pool, target, set)
    }

    fn hand_over(&self, mut stream: UnixStream, own: Vec<(String, OwnedFd)>) -> bool {
        let mut word = vec![0; HAND_OVER.len()];
        let said = stream.read_exact(&mut word).map_err(|e| e.to_string()).and_then(|()| {
            if word == HAND_OVER {
                Ok(())
            } else {
                Err("the other process is not a compatible weir".to_owned())
            }
        });
        match said.and_then(|()| self.remote.hand_over(stream, own).map_err(|e| e.to_string())) {
            Ok(()) => true,
            Err(why) => {
                self.remote.say(&format!("a hand-over was requested: {why}"));
                false
            }
        }
    }
}
