//! The work left at targets, which `lb.least_work` uses, exact to the nanosecond.
//!
//! - Counted: the work of a request from its pick until it is done, whichever balancer picked it and across whichever
//!   cable. Other time on its way to the server and back (cables, lines, backoffs) is not work.
//! - Foreseen at the pick: each `delay` and `concurrent` behind the target once, as the first attempt of a `retry`
//!   would meet it, and at its usual pace. A further attempt, and what a slow or cold server adds, counts as it
//!   begins.
//! - Work that is foreseen and not done (behind a node that refused) counts until the request returns from the
//!   target.
//! - Work of requests that go on unwanted still has to be done: it counts to its end.
//!
//! Work in progress ends at a known time, so the rest of it is the sum of those ends less `now` times their number: a
//! request costs a few additions, and nothing is scheduled.

use crate::code::Code;
use crate::code::{MemberId, SlotId};

/// No account, or no server.
pub(crate) const NONE: u32 = u32::MAX;

/// The relation of a request to the work left at a target.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Burden {
    /// The target that it was sent to: a member.
    pub account: MemberId,
    /// Where it was picked, in the terms of the caller.
    pub mark: u16,
    /// Work that it will bring and has not begun, ns.
    ahead_ns: u64,
    /// When its current work ends.
    until: Option<u64>,
    /// The server that shares its cores with it.
    server: u32,
}

const NO_BURDEN: Burden = Burden { account: MemberId::NONE, mark: 0, ahead_ns: 0, until: None, server: NONE };

/// The work left at a target.
#[derive(Clone, Debug, Default)]
struct Account {
    ahead_ns: u64,
    /// The sum of the ends of work in progress, and their number.
    ends: u128,
    busy: u32,
    /// Servers with the requests that share their cores or wait there.
    sharing: Vec<(u32, SlotId)>,
}

/// The work left at all targets, and the requests that brought it.
#[derive(Debug, Default)]
pub(crate) struct WorkLeft {
    /// By member; empty where no balancer uses it.
    accounts: Vec<Account>,
    /// Which members are targets of a balancer that uses it.
    asked: Vec<bool>,
    /// By slot.
    burdens: Vec<Burden>,
}

impl WorkLeft {
    /// Creates accounts for the targets of the balancers that use them.
    pub fn new(code: &Code, asks: impl Fn(u32) -> bool) -> WorkLeft {
        let mut work = WorkLeft::default();
        for instance in code.instances.iter().filter(|instance| asks(instance.lb)) {
            for target in 0..code.weights[instance.list as usize].len() as u32 {
                let target = code.lists[instance.list as usize].get(code, target);
                work.ask_about(code.ends.work(target.member), code.members as usize);
            }
        }
        work
    }

    fn ask_about(&mut self, member: MemberId, members: usize) {
        self.accounts.resize(members, Account::default());
        self.asked.resize(members, false);
        self.asked[member.index()] = true;
    }

    /// Whether any balancer uses it.
    #[inline]
    pub fn is_kept(&self) -> bool {
        !self.accounts.is_empty()
    }

    /// Whether any balancer uses the work left at a target.
    pub fn is_asked(&self, member: MemberId) -> bool {
        self.asked.get(member.index()).is_some_and(|asked| *asked)
    }

    /// The work left at a target. `shared` is the remaining work of a request at a server that shares its cores.
    pub fn amount(&self, account: MemberId, now_ns: u64, shared: impl Fn(u32, SlotId) -> u64) -> u64 {
        let account = &self.accounts[account.index()];
        let under_way = account.ends - u128::from(now_ns) * u128::from(account.busy);
        let shared: u64 = account.sharing.iter().map(|&(server, slot)| shared(server, slot)).sum();
        account.ahead_ns.saturating_add(u64::try_from(under_way).unwrap_or(u64::MAX)).saturating_add(shared)
    }

    /// The burden of a request.
    pub fn burden(&self, slot: SlotId) -> Burden {
        self.burdens.get(slot.index()).copied().unwrap_or(NO_BURDEN)
    }

    fn set(&mut self, slot: SlotId, burden: Burden) {
        if slot.index() >= self.burdens.len() {
            self.burdens.resize(slot.index() + 1, NO_BURDEN);
        }
        self.burdens[slot.index()] = burden;
    }

    /// A request is sent to a target, to which it brings work of `ns`.
    #[cold]
    #[inline(never)]
    pub fn bring(&mut self, slot: SlotId, account: MemberId, mark: u16, ns: u64) {
        self.drop(slot);
        let ahead = &mut self.accounts[account.index()].ahead_ns;
        *ahead = ahead.saturating_add(ns);
        self.set(slot, Burden { account, mark, ahead_ns: ns, ..NO_BURDEN });
    }

    /// Work begins of which `foreseen_ns` were foreseen: that is not ahead any more.
    fn begins(&mut self, slot: SlotId, foreseen_ns: u64) -> Option<&mut Account> {
        let burden = self.burdens.get_mut(slot.index()).filter(|burden| burden.account.is_some())?;
        let account = &mut self.accounts[burden.account.index()];
        let begun = burden.ahead_ns.min(foreseen_ns);
        burden.ahead_ns -= begun;
        account.ahead_ns -= begun;
        Some(account)
    }

    /// A request begins work that ends at `until`.
    #[cold]
    #[inline(never)]
    pub fn work(&mut self, slot: SlotId, foreseen_ns: u64, until: u64) {
        let Some(account) = self.begins(slot, foreseen_ns) else { return };
        account.ends += u128::from(until);
        account.busy += 1;
        self.burdens[slot.index()].until = Some(until);
    }

    /// A request enters a server that shares its cores.
    #[cold]
    #[inline(never)]
    pub fn share(&mut self, slot: SlotId, foreseen_ns: u64, server: u32) {
        let Some(account) = self.begins(slot, foreseen_ns) else { return };
        account.sharing.push((server, slot));
        self.burdens[slot.index()].server = server;
    }

    /// A request has finished its work, or is cut off from it.
    #[cold]
    #[inline(never)]
    pub fn stop(&mut self, slot: SlotId) {
        let Some(burden) = self.burdens.get_mut(slot.index()).filter(|b| b.account.is_some()) else { return };
        let account = &mut self.accounts[burden.account.index()];
        if let Some(until) = burden.until.take() {
            account.ends -= u128::from(until);
            account.busy -= 1;
        }
        let server = std::mem::replace(&mut burden.server, NONE);
        if server != NONE {
            account.sharing.retain(|at| *at != (server, slot));
        }
    }

    /// A request has left its target.
    #[cold]
    #[inline(never)]
    pub fn drop(&mut self, slot: SlotId) {
        let burden = self.burden(slot);
        if !burden.account.is_some() {
            return;
        }
        self.stop(slot);
        self.accounts[burden.account.index()].ahead_ns -= burden.ahead_ns;
        self.burdens[slot.index()] = NO_BURDEN;
    }

    /// Another slot goes on at the target for a request; foreseen work stays with the old one.
    pub fn go_on_in(&mut self, slot: SlotId, other: SlotId) {
        let Burden { account, mark, .. } = self.burden(slot);
        self.set(other, Burden { account, mark, ..NO_BURDEN });
    }

    /// Passes the work ahead of one request to another that arrives or goes on for it at the same target.
    pub fn hand(&mut self, from: SlotId, to: SlotId) {
        let account = self.burden(from).account;
        if account == MemberId::NONE {
            return;
        }
        if self.burden(to).account == MemberId::NONE {
            self.set(to, Burden { account, ..NO_BURDEN });
        }
        assert_eq!(self.burden(to).account, account);
        let ahead_ns = std::mem::take(&mut self.burdens[from.index()].ahead_ns);
        self.burdens[to.index()].ahead_ns += ahead_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(members: usize) -> WorkLeft {
        let mut work = WorkLeft::default();
        work.ask_about(MemberId(1), members);
        work
    }

    fn alone(work: &WorkLeft, now_ns: u64) -> u64 {
        work.amount(MemberId(1), now_ns, |_, _| 0)
    }

    #[test]
    fn work_counts_from_the_pick_until_it_is_done() {
        let mut work = kept(3);
        work.bring(SlotId(7), MemberId(1), 0, 30);
        work.bring(SlotId(2), MemberId(1), 0, 5);
        assert_eq!((alone(&work, 0), work.amount(MemberId(0), 0, |_, _| 0)), (35, 0));
        work.work(SlotId(7), 20, 120);
        assert_eq!((alone(&work, 100), alone(&work, 115)), (35, 20), "what has been served is gone");
        work.stop(SlotId(7));
        assert_eq!(alone(&work, 120), 15);
        // Slower than foreseen, and beyond that.
        work.work(SlotId(7), 10, 220);
        assert_eq!(alone(&work, 120), 105);
        work.stop(SlotId(7));
        work.work(SlotId(7), 8, 240);
        assert_eq!(alone(&work, 230), 15);
        work.drop(SlotId(7));
        work.drop(SlotId(2));
        assert_eq!(alone(&work, 240), 0);
    }

    #[test]
    fn those_at_a_shared_server_are_asked_there() {
        let mut work = kept(2);
        work.bring(SlotId(0), MemberId(1), 0, 30);
        work.share(SlotId(0), 30, 4);
        assert_eq!(work.amount(MemberId(1), 9, |server, slot| u64::from(10 * server + slot.0)), 40);
        work.stop(SlotId(0));
        assert_eq!(work.amount(MemberId(1), 9, |_, _| 99), 0);
        // A request whose target no balancer asks about has no burden.
        work.share(SlotId(5), 30, 4);
        work.work(SlotId(5), 30, 70);
        assert_eq!(work.amount(MemberId(1), 9, |_, _| 99), 0);
    }

    #[test]
    fn what_is_left_behind_keeps_its_work() {
        let mut work = kept(2);
        work.bring(SlotId(0), MemberId(1), 0, 30);
        work.work(SlotId(0), 10, 10);
        work.go_on_in(SlotId(0), SlotId(3));
        work.drop(SlotId(3));
        assert_eq!(alone(&work, 4), 26);
        work.drop(SlotId(0));
        assert_eq!(alone(&work, 4), 0);
    }
}
