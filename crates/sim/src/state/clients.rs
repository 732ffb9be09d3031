//! Users of closed traffic, and the requests that they may send.

use crate::code::SlotId;
use crate::code::order::user_order;
use weir_model::traffic::Thinking;
use weir_workload::Load;

/// The users of a replication; none where traffic is open.
#[derive(Default)]
pub(crate) struct Clients {
    pub thinking: Option<Thinking>,
    /// How many requests each user has sent.
    pub sent: Vec<u64>,
    /// By slot: the user of the request, and whether it belongs to the second half of the window.
    pub of_slot: Vec<(u32, bool)>,
    /// Whether no more requests will be sent.
    pub over: bool,
    /// Users that think before a request that they will send, and those of them that will send it within the window.
    pub thinkers: u64,
    pub in_window: u64,
    /// Requests that ended at this instant without having taken any time.
    pub at_once: (u64, u64),
    /// Bits of a user's number in the order of events.
    pub user_bits: u32,
}

impl Clients {
    pub fn new(load: &Load) -> Clients {
        let thinking = load.thinking.clone();
        let users = thinking.as_ref().map_or(0, Thinking::users);
        Clients {
            thinking,
            sent: vec![0; users as usize],
            over: load.requests == 0,
            user_bits: 32 - users.leading_zeros(),
            ..Clients::default()
        }
    }

    /// Whether traffic is closed.
    pub fn are_users(&self) -> bool {
        self.thinking.is_some()
    }

    /// A request goes on in another slot.
    pub fn copy(&mut self, from: SlotId, to: SlotId) {
        if self.are_users() {
            self.of_slot.resize(self.of_slot.len().max(from.max(to).index() + 1), (0, false));
            self.of_slot[to.index()] = self.of_slot[from.index()];
        }
    }

    /// The position of a user's request in the order of events: by user, then by its number.
    pub fn order(&self, user: u32, k: u64) -> u64 {
        user_order(user, self.user_bits, k)
    }
}
