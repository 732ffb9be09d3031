//! Counts what a peer's frames cost and what they bring (RFC 9113 §10.5). Each is lawful by itself, and a flood of them
//! keeps a loop busy with nothing (CVE-2019-9512 to 9518, CVE-2023-44487, CVE-2023-45288, CVE-2025-8671).
//!
//! The account is of what is still owed. A frame that brings nothing costs one; a head costs by its size, and gives that
//! back once it is accepted, so that only heads cost that are refused. Bytes of bodies, and streams that come to their
//! end, pay back. DATA that is sent pays for the PING by which gRPC measures its bandwidth, and for the WINDOW_UPDATE of
//! a peer that reads it. A stream that this side resets by the peer's fault costs as one that the peer resets.

/// What may be owed within a period.
pub const MAX_IDLE_FRAMES: i32 = 1000;

/// The period after which everything is forgotten, 10 s.
pub const MAX_IDLE_FRAMES_NS: u64 = 10_000_000_000;

/// Bytes of a block of fields that cost one.
const BLOCK_UNIT: u32 = 1024;

/// Bytes of SETTINGS that cost one: those of sixteen parameters, more than there are.
const SETTINGS_UNIT: u32 = 96;

/// Bytes of bodies for which one is given back, or one WINDOW_UPDATE is paid.
const BODY_UNIT: u32 = 4096;

/// Fewer bytes of a body that could be more are not worth a frame.
pub(crate) const CRUMB: u32 = 256;

/// Frames with so few bytes that together cost one until these are passed on. Small messages are honest and may wait for a
/// slow origin: the window of a connection has room for eight thousand of 131 bytes.
const CRUMBS: u8 = 8;

/// What a stream that has come to its end gives back: an interim answer, a PING, a lone frame.
const WHOLE: i32 = 2;

/// What each stream that this side opens entitles the peer to, however it ends: frames may be on their way when it is
/// cancelled.
const OWN: i32 = 4;

/// A stream that is reset after this time was given up, as at a deadline of its own; an earlier reset may be a flood.
const GIVEN_UP_NS: u64 = 100_000_000;

/// Frames that the peer may send ahead of what pays for them.
const AHEAD: i32 = 64;

/// The account of one connection.
#[derive(Debug, Default)]
pub(crate) struct Account {
    /// What is owed.
    score: i32,
    /// PING frames that are paid for.
    pings: i32,
    /// WINDOW_UPDATE frames that are paid for.
    updates: i32,
    /// Bytes of bodies, both ways, that gave nothing back yet.
    received: u32,
    sent: u32,
    /// Frames of a crumb that have cost nothing yet, and those passed on that gave nothing back yet.
    crumbs: u8,
    passed_crumbs: u8,
    /// When the period began.
    since_ns: u64,
}

impl Account {
    /// Time goes on. Returns whether another period begins.
    pub(crate) fn advance(&mut self, now_ns: u64) -> bool {
        let is_over = now_ns.saturating_sub(self.since_ns) > MAX_IDLE_FRAMES_NS;
        if is_over {
            (self.since_ns, self.score) = (now_ns, 0);
        }
        is_over
    }

    /// Whether the peer owes too much.
    pub(crate) fn is_over(&self) -> bool {
        self.score >= MAX_IDLE_FRAMES
    }

    /// A frame without progress: PRIORITY, PRIORITY_UPDATE, empty DATA, an unknown kind, a late frame.
    pub(crate) fn charge(&mut self) {
        self.score += 1;
    }

    /// SETTINGS with a payload of this many bytes; each parameter may change all streams.
    pub(crate) fn charge_settings(&mut self, bytes: u32) {
        self.score += 1 + i32::try_from(bytes / SETTINGS_UNIT).unwrap_or(i32::MAX - 1);
    }

    /// A PING.
    pub(crate) fn charge_ping(&mut self) {
        if self.pings > 0 {
            self.pings -= 1;
        } else {
            self.charge();
        }
    }

    /// A WINDOW_UPDATE.
    pub(crate) fn charge_update(&mut self) {
        if self.updates > -AHEAD {
            self.updates -= 1;
        } else {
            self.charge();
        }
    }

    /// A frame of a block of fields with this many bytes.
    pub(crate) fn charge_block(&mut self, bytes: u32) {
        self.score = self.score.saturating_add(block_cost(bytes));
    }

    /// The block whose frames have cost this much was accepted. `frames`: how many they were.
    pub(crate) fn accept_block(&mut self, bytes: u32, frames: u32) {
        let frames = i32::try_from(frames).unwrap_or(i32::MAX);
        self.pay(frames.saturating_add(i32::try_from(bytes / BLOCK_UNIT).unwrap_or(i32::MAX)));
    }

    /// The peer has reset a stream of this age.
    pub(crate) fn charge_reset(&mut self, age_ns: u64) {
        if age_ns < GIVEN_UP_NS {
            self.charge();
        }
    }

    /// Bytes of a body have come.
    pub(crate) fn count_received(&mut self, bytes: u32) {
        self.received += bytes;
        let units = self.received / BODY_UNIT;
        self.received %= BODY_UNIT;
        self.pay(i32::try_from(units).unwrap_or(i32::MAX));
    }

    /// DATA with a crumb of a body has come.
    pub(crate) fn charge_crumb(&mut self) {
        self.crumbs += 1;
        if self.crumbs == CRUMBS {
            self.crumbs = 0;
            self.charge();
        }
    }

    /// The bytes of this number of crumbs were passed on.
    pub(crate) fn pay_crumbs(&mut self, n: u32) {
        let n = n.saturating_add(self.passed_crumbs.into());
        self.passed_crumbs = (n % u32::from(CRUMBS)) as u8;
        self.pay(i32::try_from(n / u32::from(CRUMBS)).unwrap_or(i32::MAX));
    }

    /// A DATA frame was sent. `is_cut`: the peer's window allowed no more of what waits. A crumb of a body pays for nothing,
    /// or a peer could have it all in frames of one byte (CVE-2019-9511).
    pub(crate) fn count_sent(&mut self, bytes: u32, is_cut: bool) {
        self.sent = self.sent.saturating_add(bytes);
        if is_cut && bytes < CRUMB {
            return;
        }
        let units = i32::try_from(self.sent / BODY_UNIT).unwrap_or(i32::MAX);
        self.sent %= BODY_UNIT;
        self.pings = (self.pings + 1).min(MAX_IDLE_FRAMES);
        // One for the stream, one for the connection.
        self.updates = self.updates.saturating_add(2 + 2 * units.min(MAX_IDLE_FRAMES)).min(MAX_IDLE_FRAMES);
    }

    /// A stream has come to its end on both sides.
    pub(crate) fn end_whole(&mut self) {
        self.pay(WHOLE);
    }

    /// A stream that this side has opened is over, however it ended.
    pub(crate) fn end_own(&mut self) {
        self.pay(OWN);
    }

    /// The peer may not pay much ahead: at most what it may owe for its own streams.
    fn pay(&mut self, n: i32) {
        self.score = self.score.saturating_sub(n).max(0);
    }
}

fn block_cost(bytes: u32) -> i32 {
    i32::try_from(1 + bytes / BLOCK_UNIT).unwrap_or(i32::MAX)
}
