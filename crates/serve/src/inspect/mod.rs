//! The read-only view for the admin interface: each balancer and its targets, queues, listeners, loops; health and
//! readiness.
//!
//! A view asks every loop and the owner by mail and adds up their answers, which they gather between requests; threads that
//! do not answer in time, a second and some for each target, are named. So it costs nothing unless it is used, and a loop
//! that hangs delays only itself. To be called from threads that serve no client.

mod gather;
mod limits;
mod merge;
mod view;
mod withdrawn;
mod words;

pub use view::{
    CertificateView, CheckView, EventView, FleetView, LeavingView, LimitView, ListenerView, LoopView, OnLoop,
    PoolView, QueueView, RecentView, State, SubsetsView, TargetView, View,
};

use crate::control::remote::Remote;
use crate::fleets::FleetMembers;
use crate::threads::process::answer_limit;
use crate::threads::watchdog;
use std::sync::atomic::Ordering::Relaxed;
use weir_plan::Spec;

/// Whether requests can be sent here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// All listeners accept, and a request to each would find a target; what is unusual about that, in words.
    Ready(Vec<String>),
    /// It is draining.
    Draining,
    /// A condition is missing, in words.
    NotReady(Vec<String>),
}

impl Remote {
    /// The current view; `by_loop`: with the state of each loop.
    pub fn view(&self, by_loop: bool) -> View {
        let process = self.process();
        let (generation, _) = self.current();
        let limit = answer_limit(generation.blueprint.reached.len());
        let said = process.ask_all_in_turns(limit, |lp| async move { gather::of_thread(&lp).await });
        let carried: Vec<usize> = (0..process.loops() as usize).map(|n| process.carries(n)).collect();
        // At once, so that the counts and the marks are of the same members.
        let fleets =
            self.reloader().each_fleet(|of, now_ns| (fleet(of, now_ns), (of.number, of.withdrawn(now_ns))));
        let (fleets, withdrawn): (Vec<_>, Vec<_>) = fleets.into_iter().unzip();
        let mut view = View {
            draining: self.is_draining(),
            limits: limits::limits(process, &generation),
            certificates: limits::certificates(&generation),
            fleets,
            ..merge::view(said, &carried, by_loop)
        };
        withdrawn::mark(&mut view, &withdrawn);
        view
    }

    /// Threads that have been stuck for more than a second, each in words; empty: healthy.
    pub fn stalled(&self) -> Vec<String> {
        let process = self.process();
        let (now_ns, owner) = (process.clock.now(), process.owner());
        let stands = |number: u32| {
            let for_ns = process.pulse(number)?.stands_ns(now_ns)?;
            let name = watchdog::name(number as usize, owner as usize);
            Some(format!("{name} has stood still for {:.1} s", for_ns as f64 / 1e9))
        };
        (0..=owner).filter_map(stands).collect()
    }

    /// The same as yes or no.
    pub(crate) fn is_ready(&self) -> bool {
        matches!(self.readiness(), Readiness::Ready(_))
    }

    /// Whether requests can be sent here.
    pub fn readiness(&self) -> Readiness {
        let process = self.process();
        if self.is_draining() {
            return Readiness::Draining;
        }
        let (loops, serving) = (process.loops(), process.serving.load(Relaxed));
        if serving < loops {
            return Readiness::NotReady(vec![format!(
                "{} of {loops} event loops have ended",
                loops - serving
            )]);
        }
        let view = self.view(false);
        let none = view.listeners.is_empty();
        let none = none.then(|| "the thread of health checks does not answer".to_owned());
        let no_target = view.listeners.iter().filter(|listener| !listener.has_target);
        let no_target = no_target.map(|listener| format!("listener {} has no target", listener.name));
        let listed = self.reloader().each_fleet(|fleet, _| {
            let word = || format!("fleet {} has had no list yet ({})", fleet.name, fleet.source);
            (!fleet.has_list).then(word)
        });
        let missing: Vec<String> =
            none.into_iter().chain(no_target).chain(listed.into_iter().flatten()).collect();
        if !missing.is_empty() {
            return Readiness::NotReady(missing);
        }
        let has_spare = |node: u32| {
            let point = view.point.as_deref()?;
            let spec = point.specs.get(point.nodes.get(node as usize)?.spec as usize)?;
            Some(matches!(spec, Spec::Lb(lb) if lb.spare.is_some()))
        };
        Readiness::Ready(
            view.pools
                .iter()
                .filter_map(|pool| words::serves(pool, has_spare(pool.node) == Some(true)))
                .collect(),
        )
    }
}

fn fleet(of: &FleetMembers, now_ns: u64) -> FleetView {
    let counts = of.counts();
    FleetView {
        fleet: of.name.to_string(),
        source: of.source.to_string(),
        members: counts.up + counts.drain + counts.withdrawn,
        withdrawn: counts.withdrawn,
        draining: counts.drain,
        stale_s: of.stale_s(now_ns),
        error: of.error().map(str::to_owned),
        last_change_unix_ms: of.last_change_unix_ms,
    }
}
