//! Another process (here: another instance in this one) that takes the place of a running one.

use super::load::two_loops;
use super::support::{RunningBalancer, serve_whole};
use std::io::Read;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use weir_serve::{HAND_OVER, HandOverError, Options, Predecessor};

/// A path of this test's own, removed at the end.
pub(crate) struct Control(pub(crate) PathBuf);

impl Control {
    pub(crate) fn new(name: &str) -> Control {
        Control(std::env::temp_dir().join(format!("weir-{name}-{}", std::process::id())))
    }

    /// Waits there for a successor of this one; what came of it.
    pub(crate) fn hands_over(
        &self,
        old: &RunningBalancer,
    ) -> std::thread::JoinHandle<Result<(), HandOverError>> {
        let _ = std::fs::remove_file(&self.0);
        let listener = UnixListener::bind(&self.0).expect("a socket");
        let remote = old.remote();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a successor");
            let mut magic = vec![0; HAND_OVER.len()];
            stream.read_exact(&mut magic).expect("its word");
            assert_eq!(magic, HAND_OVER);
            remote.hand_over(stream, Vec::new())
        })
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Serves a file with the sockets and the members of fleets that a predecessor offers.
pub(crate) fn successor(file: &str, predecessor: &Predecessor) -> RunningBalancer {
    let inherited = Some(predecessor.sockets.clone());
    let fleets = predecessor.fleets.clone();
    serve_whole(file, Options { inherited, fleets, ..two_loops() })
}
