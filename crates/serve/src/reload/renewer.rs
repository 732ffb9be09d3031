//! Certificates that follow their files (`watch=True`): a thread that reads again what has changed, without a reload.
//!
//! A reload reads the files as well, and what it has read may be older than what this thread has. So everything that is
//! followed is read once more behind each reload, also behind one that has failed; what is the same stays.

use super::reloader::{Reloader, lock};
use super::renewal_log::RenewalLog;
use crate::threads::certificates::WatchedCertificates;
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};
use weir_discovery::{FileNews, FollowedFiles, Unwatched, UnwatchedKind, follow_files};
use weir_net::transport::tls::Renewal;

/// When files are read again that could not be used, and when they are tried to be followed again.
const AGAIN: Duration = Duration::from_secs(5);

/// A message to the thread.
pub(super) enum RenewerMessage {
    /// Files of this round have changed.
    Files(u64, FileNews),
    /// A reload has read files, or has failed.
    Reloaded,
    /// Nothing is renewed any more after this time.
    Stop(Duration),
}

struct Renewer {
    reloader: Arc<Reloader>,
    inbox: Receiver<RenewerMessage>,
    out: Sender<RenewerMessage>,
    /// Which files are followed: with others this begins anew.
    round: u64,
    paths: Vec<String>,
    followed: Option<FollowedFiles>,
    /// Whether they cannot be.
    is_blind: bool,
    /// Why changes are seen late, as it was said.
    unwatched: Vec<UnwatchedKind>,
    /// The files of parts that could not be used.
    unfit: BTreeSet<String>,
    /// When those are read again; `None`: there are none.
    again: Option<Instant>,
    log: RenewalLog,
    /// When this ends; `None`: nothing has said so.
    end: Option<Instant>,
}

/// Starts the thread, which ends by [`RenewerMessage::Stop`]. Returns the way to it.
fn start(reloader: Arc<Reloader>) -> io::Result<Sender<RenewerMessage>> {
    let (out, inbox) = channel();
    let renewer = Renewer {
        reloader,
        inbox,
        out: out.clone(),
        round: 0,
        paths: Vec::new(),
        followed: None,
        is_blind: false,
        unwatched: Vec::new(),
        unfit: BTreeSet::new(),
        again: None,
        log: RenewalLog::default(),
        end: None,
    };
    std::thread::Builder::new().name("weir-renewals".to_owned()).spawn(move || renewer.run())?;
    Ok(out)
}

impl Renewer {
    fn run(mut self) {
        self.follow();
        while let Some(due) = self.wait() {
            if !due.is_empty() {
                self.renew(&due);
            }
            for line in self.log.take(Instant::now()) {
                self.reloader.process.errors.urgent(|| line);
            }
        }
    }

    /// Follows the files of what is served now.
    fn follow(&mut self) {
        let paths: Vec<String> = self.reloader.watched_certificates().paths().into_iter().collect();
        let was_blind = std::mem::replace(&mut self.is_blind, false);
        if paths == self.paths && !was_blind {
            return;
        }
        if paths != self.paths {
            self.log.forget();
            self.unfit.clear();
        }
        (self.round, self.paths, self.followed) = (self.round + 1, paths, None);
        if self.paths.is_empty() {
            return;
        }
        let (out, round) = (self.out.clone(), self.round);
        let deliver = move |news| drop(out.send(RenewerMessage::Files(round, news)));
        match follow_files(&self.paths, deliver) {
            Ok(followed) => self.followed = Some(followed),
            Err(e) => {
                self.is_blind = true;
                self.again.get_or_insert(Instant::now() + AGAIN);
                if !was_blind {
                    let line = format!("certificates cannot be followed: {e}\nweir tries again every 5s");
                    self.log.line(line);
                }
            }
        }
    }

    /// Waits until there is something to do. Returns the paths of files that are to be read again; `None`: it ends.
    fn wait(&mut self) -> Option<BTreeSet<String>> {
        let first = match self.pause(Instant::now()) {
            Some(pause) => self.inbox.recv_timeout(pause),
            None => self.inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        let first = match first {
            Ok(message) => Some(message),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return None,
        };
        let mut messages: Vec<RenewerMessage> = first.into_iter().collect();
        messages.extend(self.inbox.try_iter());
        let mut due = BTreeSet::new();
        for message in messages {
            match message {
                RenewerMessage::Files(round, FileNews::Changed(numbers)) if round == self.round => {
                    due.extend(numbers.into_iter().filter_map(|number| self.paths.get(number).cloned()));
                }
                RenewerMessage::Files(_, FileNews::Changed(_)) => {}
                RenewerMessage::Files(_, FileNews::Unwatched(unwatched)) => self.note_unwatched(&unwatched),
                RenewerMessage::Reloaded => {
                    self.follow();
                    due.extend(self.paths.iter().cloned());
                }
                RenewerMessage::Stop(after) => self.end = Some(Instant::now() + after),
            }
        }
        let now = Instant::now();
        if self.end.is_some_and(|end| end <= now) {
            return None;
        }
        if self.again.is_some_and(|again| again <= now) {
            self.again = None;
            if self.is_blind {
                self.follow();
            }
            due.extend(self.unfit.iter().cloned());
        }
        Some(due)
    }

    /// How long nothing is to be done; `None`: until a message comes.
    fn pause(&self, now: Instant) -> Option<Duration> {
        let until = |at: Option<Instant>| at.map(|at| at.saturating_duration_since(now));
        [self.log.due(now), until(self.again), until(self.end)].into_iter().flatten().min()
    }

    /// Says once for each kind that changes are seen late.
    fn note_unwatched(&mut self, unwatched: &Unwatched) {
        if !self.unwatched.contains(&unwatched.kind) {
            self.unwatched.push(unwatched.kind);
            self.log.line(unwatched.words("certificates"));
        }
    }

    /// Reads the parts again that have one of these files.
    fn renew(&mut self, due: &BTreeSet<String>) {
        let renewals = self.reloader.renew_certificates(|path| due.contains(path));
        let (fit, unfit): (Vec<&Renewal>, Vec<&Renewal>) =
            renewals.iter().partition(|renewal| renewal.result.is_ok());
        for path in fit.iter().flat_map(|renewal| &renewal.files) {
            self.unfit.remove(path);
        }
        // A file may belong to a part that can be used and to one that cannot.
        self.unfit.extend(unfit.iter().flat_map(|renewal| renewal.files.iter().cloned()));
        let now = Instant::now();
        if !self.unfit.is_empty() {
            self.again.get_or_insert(now + AGAIN);
        } else if !self.is_blind {
            self.again = None;
        }
        self.log.note(&renewals, now);
    }
}

impl Reloader {
    /// Lets the certificates that are to be watched follow their files from now on; to be called whenever others may be
    /// served. In a verification all stays as it began.
    pub(crate) fn follow_certificates(self: &Arc<Self>) {
        if self.process.run.is_some() {
            return;
        }
        let mut renewer = lock(&self.renewer);
        if let Some(renewer) = &*renewer {
            let _ = renewer.send(RenewerMessage::Reloaded);
            return;
        }
        if self.watched_certificates().paths().is_empty() {
            return;
        }
        match start(self.clone()) {
            Ok(out) => *renewer = Some(out),
            Err(e) => self.process.errors.urgent(|| format!("certificates cannot be followed: {e}")),
        }
    }

    /// Renews nothing any more, once the requests of a drain are over.
    pub(super) fn stop_renewer(&self) {
        let renewer = lock(&self.renewer);
        let Some(out) = &*renewer else { return };
        let current = lock(&self.state).current.clone();
        let https = current.confs.values().map(|conf| &conf.listen.http);
        let most_ns = https.map(|http| http.drain_delay_ns.saturating_add(http.drain_timeout_ns)).max();
        let _ = out.send(RenewerMessage::Stop(Duration::from_nanos(most_ns.unwrap_or_default())));
    }

    /// The certificates that follow their files.
    fn watched_certificates(&self) -> WatchedCertificates {
        let current = lock(&self.state).current.clone();
        current.certificates.watched(&current.blueprint.point)
    }

    /// Reads those of their files again of which `is_due` says so.
    fn renew_certificates(&self, is_due: impl Fn(&str) -> bool) -> Vec<Renewal> {
        let current = lock(&self.state).current.clone();
        let renewals = current.certificates.watched(&current.blueprint.point).renew(is_due);
        if renewals.iter().any(Renewal::has_changed) {
            // Others may be served by now. A reload publishes its warnings after it has held this lock.
            let state = lock(&self.state);
            self.set_warnings(state.current.certificates.warnings_now());
        }
        renewals
    }
}
