//! The copy of a registry: how many instances have which status, and what is known of those of one
//! application.

use super::wire::{Applications, Instance, Port, Status};
use crate::fault::Defect;
use crate::list::{
    MOST_ENTRIES, MOST_MEMBERS, Objection, Registered, Snapshot, State, Subject, listed_with_stated, too_many,
};
use std::collections::{BTreeMap, BTreeSet};
use weir_plan::http::short;
use weir_plan::{EurekaHost, EurekaSource};

/// A registry as weir knows it.
#[derive(Debug)]
pub(super) struct RegistryCopy {
    /// The name of the application whose instances are members, in small letters.
    app: String,
    secure: bool,
    host: EurekaHost,
    /// The status of each instance, by the application's name and the instance's id: what a hash counts.
    statuses: BTreeMap<String, BTreeMap<String, Status>>,
    /// The application's instances by their ids, since the order of an answer means nothing.
    own: BTreeMap<String, Entry>,
    /// The ids that the last whole has more than once.
    doubled: BTreeSet<String>,
    /// What deltas said to be gone.
    deleted: BTreeMap<String, Deletion>,
}

/// An instance of the application.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    /// Its status, or the word that is none.
    status: Result<Status, String>,
    host: String,
    port: Port,
}

/// An instance that a delta said to be gone.
#[derive(Debug)]
struct Deletion {
    instance: Registered,
    /// Whether the whole was read since then. That may have been in the same poll, so that the deletion is
    /// forgotten at the second whole.
    is_old: bool,
}

/// The instances of the application by what the registry says of them.
#[derive(Default)]
struct Parts {
    listed: Vec<Registered>,
    /// What it states to be gone.
    gone: Vec<Registered>,
    /// Why the others do not count.
    objections: Vec<Objection>,
}

impl RegistryCopy {
    /// A copy that is empty yet.
    pub(super) fn new(source: &EurekaSource) -> RegistryCopy {
        RegistryCopy {
            app: source.app.to_lowercase(),
            secure: source.secure,
            host: source.host,
            statuses: BTreeMap::new(),
            own: BTreeMap::new(),
            doubled: BTreeSet::new(),
            deleted: BTreeMap::new(),
        }
    }

    /// Takes a whole registry in place of what is known.
    ///
    /// # Errors
    /// It has too many instances.
    pub(super) fn replace(&mut self, whole: &Applications<'_>) -> Result<(), Defect> {
        self.statuses.clear();
        self.own.clear();
        self.doubled.clear();
        self.deleted.retain(|_, deletion| !std::mem::replace(&mut deletion.is_old, true));
        for application in whole.applications() {
            let app = application.name();
            for instance in application.instances() {
                if self.insert(&app, instance) {
                    self.doubled.insert(instance.id());
                }
            }
        }
        self.limit()
    }

    /// Applies what has changed. A change may come again: servers repeat those of the last three minutes.
    ///
    /// # Errors
    /// There are too many instances now.
    pub(super) fn apply(&mut self, delta: &Applications<'_>) -> Result<(), Defect> {
        for application in delta.applications() {
            let app = application.name();
            for instance in application.instances() {
                if instance.is_deleted() {
                    self.remove(&app, instance);
                } else {
                    self.insert(&app, instance);
                }
            }
        }
        self.limit()
    }

    /// Whether this is the copy's hash. A server that sends none is not doubted.
    pub(super) fn has_hash(&self, hash: Option<&str>) -> bool {
        hash.is_none_or(|hash| hash == self.hash())
    }

    /// Each status that there is, with the number of instances that have it.
    fn hash(&self) -> String {
        let mut counts: BTreeMap<Status, usize> = BTreeMap::new();
        for status in self.statuses.values().flat_map(BTreeMap::values) {
            *counts.entry(*status).or_default() += 1;
        }
        counts.iter().map(|(status, count)| format!("{}_{count}_", status.name())).collect()
    }

    /// The application's instances as a list.
    ///
    /// # Errors
    /// There are too many.
    pub(super) fn list(&self) -> Result<Snapshot, Defect> {
        let Parts { listed, gone, objections } = self.divide();
        let first = listed.len() + 1;
        let mut list = listed_with_stated(listed, gone)?;
        for (i, objection) in objections.into_iter().enumerate() {
            list.leave_out(Subject::Entry(first + i), objection, || None);
        }
        Ok(list)
    }

    /// The ids of what is stated to be gone.
    #[cfg(test)]
    pub(super) fn gone(&self) -> Vec<String> {
        self.divide().gone.into_iter().filter_map(|instance| instance.id).collect()
    }

    fn divide(&self) -> Parts {
        let mut parts = Parts::default();
        for (id, entry) in &self.own {
            let state = match &entry.status {
                Ok(Status::Up) => State::Up,
                Ok(Status::OutOfService | Status::Starting) => State::Drain,
                Ok(Status::Down | Status::Unknown) => {
                    parts.gone.extend(entry.registered(id, State::Drain));
                    continue;
                }
                Err(word) => {
                    let problem = format!("the status of \"{}\" is \"{word}\", which is none", short(id));
                    let remedy = "register it with UP, STARTING, OUT_OF_SERVICE or DOWN";
                    parts.objections.push(Objection::new(problem, remedy));
                    continue;
                }
            };
            match self.object(id, entry.port) {
                Some(objection) => parts.objections.push(objection),
                None => parts.listed.extend(entry.registered(id, state)),
            }
        }
        parts.gone.extend(self.deleted.values().map(|deletion| deletion.instance.clone()));
        // Where one that is gone was, another may be by now.
        let places: BTreeSet<_> = parts.listed.iter().map(|one| (one.host.as_str(), one.port)).collect();
        parts.gone.retain(|one| !places.contains(&(one.host.as_str(), one.port)));
        parts.objections.extend(self.doubled.iter().map(|id| {
            let problem = format!("\"{}\" is in the registry twice: the last one counts", short(id));
            Objection::new(problem, "give each instance an instanceId of its own")
        }));
        parts
    }

    /// Why an instance with this port is no member.
    fn object(&self, id: &str, port: Port) -> Option<Objection> {
        let (name, other) = match self.secure {
            true => ("secure port", "take the other one by `secure=False`"),
            false => ("port", "take the secure one by `secure=True`"),
        };
        let id = short(id);
        if port.number.is_none() {
            let problem = format!("\"{id}\" has no {name}");
            return Some(Objection::new(problem, format!("register it with one, or {other}")));
        }
        (!port.is_enabled).then(|| {
            let problem = format!("the {name} of \"{id}\" is switched off");
            Objection::new(problem, format!("switch it on where the instance registers, or {other}"))
        })
    }

    /// Takes an instance as it is now. Returns whether the application had one with its id.
    fn insert(&mut self, app: &str, instance: &Instance<'_>) -> bool {
        let id = instance.id();
        let status = instance.status().unwrap_or(Status::Unknown);
        self.statuses.entry(app.to_owned()).or_default().insert(id.clone(), status);
        if app != self.app {
            return false;
        }
        self.deleted.remove(&id);
        let entry = self.read(instance);
        self.own.insert(id, entry).is_some()
    }

    fn remove(&mut self, app: &str, instance: &Instance<'_>) {
        let id = instance.id();
        if let Some(statuses) = self.statuses.get_mut(app) {
            statuses.remove(&id);
            if statuses.is_empty() {
                self.statuses.remove(app);
            }
        }
        if app != self.app {
            return;
        }
        let known = self.own.remove(&id);
        let entry = known.unwrap_or_else(|| self.read(instance));
        // Those above the limit are missing from the list as if the registry did not say why.
        let registered = entry.registered(&id, State::Drain).filter(|_| self.deleted.len() < MOST_MEMBERS);
        if let Some(instance) = registered {
            self.deleted.insert(id, Deletion { instance, is_old: false });
        }
    }

    /// What is kept of an instance.
    fn read(&self, instance: &Instance<'_>) -> Entry {
        Entry { status: instance.status(), host: instance.host(self.host), port: instance.port(self.secure) }
    }

    fn limit(&self) -> Result<(), Defect> {
        let count: usize = self.statuses.values().map(BTreeMap::len).sum();
        if count > MOST_ENTRIES { Err(too_many(MOST_ENTRIES, "instances")) } else { Ok(()) }
    }
}

impl Entry {
    /// The instance as a member, if it has a port.
    fn registered(&self, id: &str, state: State) -> Option<Registered> {
        let port = self.port.number?;
        let id = Some(id.to_owned()).filter(|id| !id.is_empty());
        Some(Registered { host: self.host.clone(), port, id, weight: 1.0, state })
    }
}
