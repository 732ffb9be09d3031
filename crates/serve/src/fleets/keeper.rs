//! The thread that keeps fleets: it takes lists and faults, ends members whose grace is over or that have failed, and
//! says so. Lists that come while a change is applied are taken together ([`super::updates`]).

use super::failures::{Answer, Failures, Question, Withdrawn};
use super::fleet::ListResult;
use super::sources::Sources;
use super::updates::latest;
use super::words::{Line, Log};
use super::{Changes, FleetSet};
use crate::metrics::now_unix_ms;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};
use weir_discovery::{FollowedSource, Readers, Snapshot, Unwatched, UnwatchedKind, Update};
use weir_plan::SourceKind;
use weir_stats::Key;

/// How often targets are looked at that only a doubted list lacks.
const LOOK: Duration = Duration::from_millis(250);
/// When a change is tried again that could not be applied, and a source that could not be followed.
const AGAIN: Duration = Duration::from_secs(1);

/// How often it is looked whether graphs have ended, of which too many remain, and whether failures can be counted.
const ROOM: Duration = Duration::from_millis(100);

/// A message to the keeper.
pub(crate) enum Message {
    /// A list, or why there is none.
    Update(Update),
    /// A question to the source of this number has failed.
    Failure(usize),
    /// Changes of lists are seen late.
    Unwatched(Unwatched),
    /// The fleets are those of another topology, with these sources.
    Renewed(Vec<FollowedSource>),
    /// Nothing changes any more after this time.
    Stop(Duration),
}

/// What is said while there is no room for a change.
const WAITS: &str =
    "members of fleets wait to be changed: requests of too many earlier changes are not over yet";

/// The door by which members come to be served.
pub(crate) trait Applies: Send + Sync {
    /// Whether members may change now: their graphs remain for their last requests, and there may be too many of them.
    fn has_room(&self) -> bool;

    /// Lets numbers of fleets change by which nothing is served, unless another change is applied just now: that may take
    /// long. Returns whether it did.
    fn note(&self, act: &mut dyn FnMut(&mut FleetSet)) -> bool;

    /// Lets fleets change at this instant, and serves what has come of them if `act` returns that this differs.
    ///
    /// # Errors
    /// In words, if it cannot be served; the fleets have changed nonetheless.
    fn change(&self, act: &mut dyn FnMut(&mut FleetSet, u64) -> bool) -> Result<(), String>;

    /// Reads the fleets at this instant.
    fn read<T>(&self, read: impl FnOnce(&FleetSet, u64) -> T) -> T
    where
        Self: Sized;

    /// Asks all threads about these members.
    fn ask(&self, members: Vec<Withdrawn>) -> (Arc<Question>, Vec<Answer>);

    /// Writes to the error log.
    fn say(&self, line: String);

    /// The same of a fault, which has no limit of lines.
    fn warn(&self, line: String);
}

/// Starts the thread, which ends by [`Message::Stop`]. Returns the way to it. `readers`: those of the process.
pub(crate) fn start(
    door: Arc<impl Applies + 'static>,
    readers: Readers,
    draw: Key,
) -> io::Result<Sender<Message>> {
    let keeper = Keeper::new(door, Sources::new(readers, draw));
    let out = keeper.out.clone();
    std::thread::Builder::new().name("weir-fleets".to_owned()).spawn(move || keeper.run())?;
    Ok(out)
}

struct Keeper<A> {
    door: Arc<A>,
    inbox: Receiver<Message>,
    out: Sender<Message>,
    sources: Sources,
    /// When those are tried again that cannot be followed; `None`: there is none.
    retry: Option<Instant>,
    /// Questions that have failed, by the number of their source, which are not counted by its fleets yet.
    failed_questions: BTreeMap<usize, u64>,
    failures: Failures,
    log: Log,
    /// Why changes of lists are seen late, as it was said.
    unwatched: Vec<UnwatchedKind>,
    /// Why the members are not served as they are.
    unserved: Option<String>,
    /// Lists and faults for which there is no room yet.
    waiting: Option<Vec<Update>>,
    /// Withdrawn members that are known to have failed.
    failed: Vec<Withdrawn>,
    /// When this ends; `None`: nothing has said so.
    end: Option<Instant>,
}

impl<A: Applies> Keeper<A> {
    fn new(door: Arc<A>, sources: Sources) -> Keeper<A> {
        let (out, inbox) = channel();
        Keeper {
            door,
            inbox,
            out,
            sources,
            retry: None,
            failed_questions: BTreeMap::new(),
            failures: Failures::default(),
            log: Log::default(),
            unwatched: Vec::new(),
            unserved: None,
            waiting: None,
            failed: Vec::new(),
            end: None,
        }
    }

    fn run(mut self) {
        self.follow_again();
        while let Some(updates) = self.wait() {
            self.count_failures();
            let is_first = self.waiting.is_none();
            let before = self.waiting.take().unwrap_or_default();
            let updates = latest(before.into_iter().chain(updates).collect());
            if self.door.has_room() {
                self.step(&updates);
            } else {
                if is_first {
                    self.log.line(WAITS.to_owned());
                }
                self.waiting = Some(updates);
            }
            self.note_belief();
            let Keeper { log, door, .. } = &mut self;
            log.write(Instant::now(), |line| match line {
                Line::Fault(line) => door.warn(line),
                Line::Change(line) => door.say(line),
            });
        }
    }

    /// Follows these sources, and those that are followed already as before.
    fn follow(&mut self, wanted: Vec<FollowedSource>) {
        let names = self.door.read(|set, _| set.names());
        self.log.retain(&names);
        let result = self.sources.follow(wanted, &self.out);
        let retry = result.is_err().then(|| Instant::now() + AGAIN);
        let was_blind = std::mem::replace(&mut self.retry, retry).is_some();
        if let Err(e) = result
            && !was_blind
        {
            let word = "some lists of fleets cannot be followed";
            self.door.warn(format!("{word}: {e}\nweir serves as before, and tries again"));
        }
    }

    /// Follows the sources that the fleets have now.
    fn follow_again(&mut self) {
        let wanted = self.door.read(|set, _| set.followed());
        self.follow(wanted);
    }

    /// Waits until there is something to do. Returns the lists and faults that have come; `None`: it ends.
    fn wait(&mut self) -> Option<Vec<Update>> {
        let first = match self.receive() {
            Ok(message) => Some(message),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return None,
        };
        let messages: Vec<Message> = first.into_iter().chain(self.inbox.try_iter()).collect();
        let mut updates = Vec::new();
        for message in messages {
            match message {
                Message::Update(update) => updates.push(update),
                Message::Failure(number) => self.note_failure(number),
                Message::Unwatched(unwatched) => self.note_unwatched(&unwatched),
                // Each by itself: a source that is gone in between begins anew.
                Message::Renewed(wanted) => self.follow(wanted),
                Message::Stop(after) => self.end = Some(Instant::now() + after),
            }
        }
        if self.end.is_some_and(|end| end <= Instant::now()) {
            return None;
        }
        if self.retry.is_some_and(|at| at <= Instant::now()) {
            self.follow_again();
        }
        Some(updates)
    }

    /// Waits for a message as long as nothing is to be done. Questions that failed are summed meanwhile: they are no
    /// work, however many come.
    fn receive(&mut self) -> Result<Message, RecvTimeoutError> {
        let mut end = self.pause().map(|pause| Instant::now() + pause);
        loop {
            let message = match end {
                Some(end) => self.inbox.recv_timeout(end.saturating_duration_since(Instant::now())),
                None => self.inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match message {
                Ok(Message::Failure(number)) => {
                    if self.failed_questions.is_empty() {
                        let soon = Instant::now() + ROOM;
                        end = Some(end.map_or(soon, |end| end.min(soon)));
                    }
                    self.note_failure(number);
                }
                message => return message,
            }
        }
    }

    /// Notes a question that has failed.
    fn note_failure(&mut self, number: usize) {
        if self.sources.find(number).is_some() {
            *self.failed_questions.entry(number).or_default() += 1;
        }
    }

    /// Counts questions that have failed, for all fleets of their sources. No member changes by them, so that nothing is
    /// served anew; while a reload builds graphs they wait, and nothing else does.
    fn count_failures(&mut self) {
        if self.failed_questions.is_empty() {
            return;
        }
        let (sources, failed) = (&self.sources, &self.failed_questions);
        let is_counted = self.door.note(&mut |set| {
            for (number, count) in failed {
                let Some(source) = sources.find(*number) else { continue };
                let fleets = set.fleets.iter_mut().filter(|fleet| fleet.source == *source);
                fleets.for_each(|fleet| fleet.count_failures(*count));
            }
        });
        if is_counted {
            self.failed_questions.clear();
        }
    }

    /// Says once for each kind that changes of lists are seen late.
    fn note_unwatched(&mut self, unwatched: &Unwatched) {
        if !self.unwatched.contains(&unwatched.kind) {
            self.unwatched.push(unwatched.kind);
            self.log.line(format!("fleets: {unwatched}"));
        }
    }

    /// Notes fleets of which no member is in doubt: what was in doubt is listed again, has failed, or its grace is over.
    fn note_belief(&mut self) {
        let Keeper { log, door, .. } = self;
        door.read(|set, _| {
            let certain = set.fleets.iter().filter(|fleet| fleet.counts().withdrawn == 0);
            certain.for_each(|fleet| log.believed(&fleet.name, &fleet.source));
        });
    }

    /// How long nothing is to be done; `None`: until a message comes.
    fn pause(&self) -> Option<Duration> {
        let (next, looks) = self.door.read(|set, now_ns| {
            let next = set.next_deadline_ns();
            (next.map(|at| Duration::from_nanos(at.saturating_sub(now_ns))), next.is_some())
        });
        let look = looks.then_some(LOOK);
        let now = Instant::now();
        let again = self.unserved.is_some().then_some(AGAIN);
        let retry = self.retry.map(|at| at.saturating_duration_since(now));
        let count = (!self.failed_questions.is_empty()).then_some(ROOM);
        let end = self.end.map(|end| end.saturating_duration_since(now));
        let found = (!self.failed.is_empty()).then_some(Duration::ZERO);
        if self.waiting.is_some() {
            return end.into_iter().chain([ROOM]).min();
        }
        let waits = [next, look, again, retry, count, end, found, self.log.due(now)];
        waits.into_iter().flatten().min()
    }

    fn step(&mut self, updates: &[Update]) {
        let failed = self.failed();
        self.failed.clear();
        let is_due = self.door.read(|set, now_ns| set.next_deadline_ns().is_some_and(|at| at <= now_ns));
        if updates.is_empty() && failed.is_empty() && !is_due && self.unserved.is_none() {
            return;
        }
        let (sources, log, differs) = (&self.sources, &mut self.log, self.unserved.is_some());
        let result = self.door.change(&mut |set, now_ns| {
            let mut all = vec![Changes::default(); set.fleets.len()];
            for update in updates {
                let Some(source) = sources.find(update.source) else { continue };
                take(set, now_ns, source, update, &mut all, log);
            }
            for (fleet, changes) in set.fleets.iter_mut().zip(&mut all) {
                let own = failed.iter().filter(|(number, _)| *number == fleet.number);
                let own: Vec<_> = own.map(|(_, key)| key.clone()).collect();
                *changes += fleet.end(now_ns, &own);
                *changes += fleet.tick(now_ns);
                if !changes.is_empty() {
                    fleet.last_change_unix_ms = Some(now_unix_ms());
                    let names = fleet.take_names();
                    log.note(&fleet.name, &fleet.source, *changes, names);
                }
            }
            differs || all.iter().any(|changes| !changes.is_empty())
        });
        let unserved = result.err();
        if let Some(why) = unserved.as_ref().filter(|why| self.unserved.as_ref() != Some(*why)) {
            self.door.warn(format!(
                "members of fleets cannot be served: {why}\nweir serves as before, and tries again"
            ));
        }
        self.unserved = unserved;
        // What fails from now on counts against those that this has withdrawn.
        self.failed = self.failed();
    }

    /// Withdrawn members that have failed since they are.
    fn failed(&mut self) -> Vec<Withdrawn> {
        let withdrawn = self.door.read(|set, now_ns| {
            let all = set.fleets.iter();
            all.flat_map(|fleet| fleet.withdrawn(now_ns).into_iter().map(|key| (fleet.number, key))).collect()
        });
        let withdrawn: Vec<Withdrawn> = withdrawn;
        if withdrawn.is_empty() {
            self.failures = Failures::default();
            return Vec::new();
        }
        let (question, answers) = self.door.ask(withdrawn);
        let mut failed = self.failures.new_in(question.members(), &answers);
        failed.extend(std::mem::take(&mut self.failed));
        failed
    }
}

/// Takes what a source gives, for all fleets that it lists.
fn take(
    set: &mut FleetSet,
    now_ns: u64,
    source: &SourceKind,
    update: &Update,
    all: &mut [Changes],
    log: &mut Log,
) {
    let now = Instant::now();
    let before = match &update.result {
        Ok(list) => set.lists.insert(source.clone(), list.clone()),
        Err(_) => None,
    };
    for (fleet, changes) in set.fleets.iter_mut().zip(all).filter(|(fleet, _)| fleet.source == *source) {
        match &update.result {
            // The list that was waited for comes once more when the file begins to be followed.
            Ok(list) if is_known(before.as_ref(), list) && fleet.is_listed() && !fleet.is_stale() => {}
            Ok(list) => {
                if fleet.error().is_some() {
                    log.line(format!("fleet {}: a list again ({source})", fleet.name));
                }
                let was = fleet.counts();
                let (result, more) = fleet.list(now_ns, list);
                *changes += more;
                if result == ListResult::Doubted && fleet.counts().withdrawn > 0 {
                    log.doubted(&fleet.name, source, list.members.len(), was, fleet.counts());
                }
                log.left_out(&fleet.name, source, list, now);
            }
            Err(fault) => {
                fleet.fail(now_ns, fault);
                log.line(format!("fleet {}: {fault}", fleet.name));
            }
        }
        if update.result.is_ok() {
            let counts = fleet.counts();
            let has_members = counts.up + counts.drain + counts.withdrawn > 0;
            log.note_members(&fleet.name, source, has_members, now);
        }
    }
}

fn is_known(before: Option<&Arc<Snapshot>>, list: &Arc<Snapshot>) -> bool {
    before.is_some_and(|before| before == list)
}

#[cfg(test)]
#[path = "keeper_tests.rs"]
mod tests;
