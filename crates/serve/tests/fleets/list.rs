//! A file that lists members, and what is served of it.

use crate::support::{Origin, RunningBalancer};
use std::fs;
use std::path::PathBuf;
use weir_serve::{Exposition, Options};

/// A file in a folder of its own, both removed at the end.
pub(crate) struct Members(PathBuf);

impl Members {
    /// There is no file yet.
    pub(crate) fn new(name: &str) -> Members {
        let number = std::process::id();
        let unique = std::thread::current().name().unwrap_or_default().replace(':', "-");
        let folder = std::env::temp_dir().join(format!("weir-fleet-{number}-{unique}-{name}"));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a folder");
        Members(folder)
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.0.join("api.json")
    }

    /// Writes beside the file and renames over it, as `mv` does.
    pub(crate) fn write(&self, text: &str) {
        let new = self.0.join("new");
        fs::write(&new, text).expect("a file");
        fs::rename(new, self.path()).expect("a file");
    }

    /// Lists these.
    pub(crate) fn list(&self, origins: &[&Origin]) {
        let all: Vec<String> = origins.iter().map(|origin| format!("\"{}\"", origin.addr)).collect();
        self.write(&format!("[{}]", all.join(", ")));
    }
}

impl Drop for Members {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A file with a fleet `apps` that a file lists, and a node over it.
pub(crate) fn api(file: &Members, node: &str) -> String {
    api_with(file, node, "")
}

/// The same with further arguments of the fleet.
pub(crate) fn api_with(file: &Members, node: &str, more: &str) -> String {
    let path = file.path();
    format!(
        "apps = find.file(\"{}\", lambda: server(\"app\"){more})\n\
        listen(\"127.0.0.1:0\", {node}, name = \"front\")\n",
        path.display()
    )
}

pub(crate) fn one_loop() -> Options {
    Options { loops: Some(1), quiet: true, ..Options::default() }
}

/// Whether exactly these are targets of the first balancer.
pub(crate) fn is_served(x: &RunningBalancer, want: &[String]) -> bool {
    let mut targets = targets(x);
    let mut want = want.to_vec();
    targets.sort();
    want.sort();
    targets == want
}

/// The names of the targets of the first balancer.
pub(crate) fn targets(x: &RunningBalancer) -> Vec<String> {
    x.remote().view(false).pools[0].targets.iter().map(|target| target.name.clone()).collect()
}

pub(crate) fn scraped(x: &RunningBalancer) -> String {
    String::from_utf8(x.remote().scrape(Exposition::Prometheus)).expect("text")
}

/// The weight of a target of the first balancer, on each loop.
pub(crate) fn weights(x: &RunningBalancer, origin: &Origin) -> Vec<f64> {
    let (addr, view) = (origin.addr.to_string(), x.remote().view(true));
    let target = view.pools[0].targets.iter().find(|target| target.name == addr);
    target.map(|target| target.loops.iter().map(|one| one.weight).collect()).unwrap_or_default()
}
