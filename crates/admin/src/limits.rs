//! What everybody who asks has to keep to, so that nobody is held up by another.

use std::time::Duration;

/// Connections of the admin interface at once; more wait before its socket.
pub(crate) const CONNECTIONS: usize = 64;
/// Those of the control socket are counted apart, so that it is free when the other one is not.
pub(crate) const CONTROL_CONNECTIONS: usize = 16;
/// Pages that follow by `/events`.
pub(crate) const FOLLOWERS: usize = 32;
/// For the whole head of a request, and between two of them.
pub(crate) const HEAD: Duration = Duration::from_secs(10);
/// The longest head, bytes.
pub(crate) const HEAD_BYTES: usize = 16 * 1024;
/// For the whole body of a request.
pub(crate) const BODY: Duration = Duration::from_secs(10);
/// The longest body of a request, bytes.
pub(crate) const BODY_BYTES: usize = 64 * 1024;
/// For how long a reader may take nothing of its answer.
pub(crate) const STALL: Duration = Duration::from_secs(20);
/// Questions to what is served at once; each has a thread while it waits.
pub(crate) const QUESTIONS: usize = 4;
/// Reloads that are waited for at once, apart: each may take long, and those that wait together are one.
pub(crate) const RELOADS: usize = 8;
/// The largest file of a token, bytes.
pub(crate) const TOKEN_BYTES: u64 = 4096;
/// How often a page that follows is told what has changed.
pub(crate) const EVERY: Duration = Duration::from_secs(1);
/// How old a view may be that is shown once more.
pub(crate) const FRESH: Duration = Duration::from_millis(200);
/// For answers that are being sent when all ends.
pub(crate) const LAST_WORDS: Duration = Duration::from_secs(1);
