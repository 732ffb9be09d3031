//! Closed loops whose users neither think nor wait: a user that is answered at the instant of its request sends the
//! next one then, and so on, until no request is left.

use super::{index, warning};
use crate::diagnostic::Diagnostic;
use crate::{Edge, Faulty, Lb, Mode, Node, NodeId, Point, Scenario, Spec};
use weir_model::{Dist, Traffic};
use weir_policy::Kind;
use weir_policy::config::Retry;

/// A warning for each closed loop without think time that may spend all of its requests at one instant.
pub fn instant_loops(point: &Point) -> Vec<Diagnostic> {
    let loops =
        |scenario: &&Scenario| matches!(&scenario.traffic, Traffic::Closed { think, .. } if is_zero(think));
    if !point.scenarios.iter().any(|scenario| loops(&scenario)) {
        return Vec::new();
    }
    let rooms = rooms(point);
    let find = |scenario: &Scenario| {
        let Traffic::Closed { users, .. } = scenario.traffic else { return None };
        let here = rooms.get(scenario.root as usize)?;
        let full = [here.up, here.down].into_iter().find(|room| u64::from(users) > room.users)?;
        let id = full.limit?;
        let (node, spec) = (point.node(id)?, point.spec(id)?);
        let (why, help) = words(spec);
        let message = format!(
            "scenario \"{}\": its users do not think, and this `{}` {why}: all further requests are spent at that instant",
            scenario.name,
            spec.kind()
        );
        let span = point.sites.get(node.site as usize).map_or("", |site| site.span.as_str());
        let think = "give the users time to think, as in `think=10*ms`";
        Some(warning(message).help(format!("{think}{help}")).at_span(span))
    };
    point.scenarios.iter().filter(loops).filter_map(find).collect()
}

/// When a node answers at once, and what else helps.
fn words(spec: &Spec) -> (&'static str, &'static str) {
    match spec {
        Spec::Queue { .. } => {
            ("rejects at once what finds it full", ", or let requests wait: a larger `capacity`")
        }
        Spec::Lb(_) => {
            ("rejects at once what finds all targets full", ", or let requests wait: a larger `max_waiting`")
        }
        Spec::Rate { .. } => ("rejects at once what finds no token", ""),
        Spec::Faulty(_) => ("refuses requests at once while it is down", ""),
        Spec::Server { .. } => ("answers at once", ", or the server a time, as in `model=10*ms`"),
        _ => ("answers at once", ""),
    }
}

/// How many users at once find something that takes time; a further one is answered at the instant of its request.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Room {
    users: u64,
    /// The node that answers the others.
    limit: Option<NodeId>,
}

impl Room {
    const ENDLESS: Room = Room { users: u64::MAX, limit: None };

    fn new(users: u64, limit: NodeId) -> Room {
        Room { users, limit: Some(limit) }
    }

    /// With another beside it, to which a user comes sooner or later.
    fn plus(self, other: Room) -> Room {
        match self.users.saturating_add(other.users) {
            u64::MAX => Room::ENDLESS,
            users => Room { users, limit: self.limit.or(other.limit) },
        }
    }

    fn at_most(self, users: u64, limit: NodeId) -> Room {
        if users < self.users { Room::new(users, limit) } else { self }
    }
}

/// The room behind a node while all is up, and while what may fail is down.
#[derive(Clone, Copy, Debug)]
struct Rooms {
    up: Room,
    down: Room,
}

impl Rooms {
    const ENDLESS: Rooms = Rooms { up: Room::ENDLESS, down: Room::ENDLESS };

    fn map(self, change: impl Fn(Room) -> Room) -> Rooms {
        Rooms { up: change(self.up), down: change(self.down) }
    }
}

/// The rooms of each node. A node comes after all that it leads to.
fn rooms(point: &Point) -> Vec<Rooms> {
    let mut all: Vec<Rooms> = Vec::with_capacity(point.nodes.len());
    for (id, node) in point.nodes.iter().enumerate() {
        let id = index(id);
        let here = point.spec(id).map_or(Rooms::ENDLESS, |spec| room(point, id, node, spec, &all));
        all.push(here);
    }
    all
}

fn room(point: &Point, id: NodeId, node: &Node, spec: &Spec, all: &[Rooms]) -> Rooms {
    let of = |id: NodeId| all.get(id as usize).copied().unwrap_or(Rooms::ENDLESS);
    let at_once = Rooms::ENDLESS.map(|_| Room::new(0, id));
    let behind = match node.to {
        Edge::None => Rooms::ENDLESS,
        Edge::Node(next) => of(next),
        Edge::List(list) => {
            let targets = point.lists.get(list as usize).map(Vec::as_slice).unwrap_or_default();
            return among(targets.iter().map(|target| of(*target)), id, spec);
        }
    };
    match spec {
        Spec::Respond { .. } | Spec::Redirect { .. } | Spec::Server { model: None, .. } => at_once,
        Spec::Server { model: Some(model), .. } => of(*model),
        Spec::Delay { time } | Spec::Cable { time, .. } if !is_zero(time) => Rooms::ENDLESS,
        Spec::Concurrent { work, .. } => {
            if is_zero(work) {
                at_once
            } else {
                Rooms::ENDLESS
            }
        }
        Spec::Queue { concurrency, capacity, .. } => {
            let inside = u64::from(*concurrency);
            behind.map(|room| match capacity {
                // What is inside rejects before this is full.
                _ if room.users < inside => room,
                None => Room::ENDLESS,
                Some(waiting) => Room::new(inside.saturating_add(*waiting), id),
            })
        }
        Spec::Rate { .. } => at_once,
        Spec::Faulty(Faulty { mode: Mode::Refuse | Mode::Crash, .. }) => {
            Rooms { up: behind.up, down: Room::new(0, id) }
        }
        Spec::Retry(retry) => behind.map(|room| if waits(retry, point, room) { Room::ENDLESS } else { room }),
        _ => behind,
    }
}

/// The rooms of nodes of which a user comes to each in the end; several are hardly down together.
fn among(targets: impl ExactSizeIterator<Item = Rooms>, id: NodeId, spec: &Spec) -> Rooms {
    let alone = targets.len() == 1;
    let limits = |room: Room| match spec {
        Spec::Lb(Lb { max_in_flight: Some(most), .. }) => room.at_most(u64::from(*most), id),
        _ => room,
    };
    let none = Rooms::ENDLESS.map(|_| Room { users: 0, limit: None });
    let sum = targets.map(|target| target.map(limits)).fold(none, |sum, target| Rooms {
        up: sum.up.plus(target.up),
        down: sum.down.plus(if alone { target.down } else { target.up }),
    });
    sum.map(|room| match spec {
        Spec::Lb(lb) if room.limit == Some(id) => match lb.max_waiting {
            None => Room::ENDLESS,
            Some(waiting) => room.plus(Room { users: waiting, limit: None }),
        },
        _ => room,
    })
}

/// Whether a request that is answered at once is tried again after a while.
fn waits(retry: &Retry, point: &Point, room: Room) -> bool {
    let kind = match room.limit.and_then(|id| point.spec(id)) {
        Some(Spec::Queue { .. } | Spec::Lb(_) | Spec::Rate { .. }) => Kind::Overloaded,
        Some(Spec::Faulty(Faulty { mode: Mode::Crash, .. })) => Kind::ConnectFailed,
        Some(Spec::Faulty(_)) => Kind::Refused,
        _ => return false,
    };
    retry.attempts > 1 && retry.backoff_ns > 0 && retry.budget.is_none() && retry.on.contains(&kind)
}

/// Whether each draw is 0.
fn is_zero(time: &Dist) -> bool {
    time.mean_ns() == Some(0.0)
}
