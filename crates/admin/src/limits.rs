//! The limits of clients of the admin interface, so that none delays another.

use std::time::Duration;

/// Connections that have sent no whole request, at once, of each socket: enough for a probe to send its head beside a
/// flood of silent ones.
pub(crate) const WAITING: usize = 256;
/// Connections of the admin interface at once that have asked something; for another the one that has been silent for
/// longest is closed.
pub(crate) const CONNECTIONS: usize = 64;
/// Connections of the control socket are counted separately, so that it is free when the other one is not.
pub(crate) const CONTROL_CONNECTIONS: usize = 16;
/// Connections whose last request was a probe (`/healthz`, `/ready`), counted separately too.
pub(crate) const PROBES: usize = 16;
/// Connections accepted before those accepted earlier are read.
pub(crate) const ACCEPTS: usize = 8;
/// Pages that follow by `/events`.
pub(crate) const FOLLOWERS: usize = 32;
/// For the whole head of a request, and between two of them.
pub(crate) const HEAD: Duration = Duration::from_secs(1);
/// The longest head, bytes.
pub(crate) const HEAD_BYTES: usize = 16 * 1024;
/// For the whole body of a request.
pub(crate) const BODY: Duration = Duration::from_secs(10);
/// The longest body of a request, bytes.
pub(crate) const BODY_BYTES: usize = 64 * 1024;
/// The time for which a reader may accept nothing of its answer.
pub(crate) const STALL: Duration = Duration::from_secs(20);
/// The most concurrent questions to the topology; each has a thread while it waits.
pub(crate) const QUESTIONS: usize = 4;
/// The most reloads waited for at once, counted separately: each may take long, and concurrent ones are merged.
pub(crate) const RELOADS: usize = 8;
/// The largest file of a token, bytes.
pub(crate) const TOKEN_BYTES: u64 = 4096;
/// How often a following page receives changes.
pub(crate) const EVERY: Duration = Duration::from_secs(1);
/// The age of a view that may be shown once more.
pub(crate) const FRESH: Duration = Duration::from_millis(200);
/// The time for answers in progress when the interface ends.
pub(crate) const LAST_WORDS: Duration = Duration::from_secs(1);
