//! Constants that no file can set: limits and times that are the same for every topology (the first lines of
//! `docs/spec/serving.md`).
//!
//! The proxy runs by these constants, and `weir plan` prints the very same ones ([`LIMITS`]): a reader of a plan sees
//! what is set and what is fixed. They belong to this version of weir, not to the topology, so they are in no plan's
//! hash, and a plan that is read back need not have them; what it says of them is passed over.
//!
//! Only values with an effect visible from outside are here. Sizes of buffers, how much is done in one turn, and the
//! like are tunings, and stay where they are used.

use weir_http1::Limits;

const KIB: usize = 1024;
const MS: u64 = 1_000_000;
const S: u64 = 1000 * MS;

/// Makes a constant of each line, and of all of them the table, so that none can be missing there.
macro_rules! limits {
    ($($(#[$doc:meta])* $shown:literal $name:ident: $of:ty = $value:expr;)*) => {
        $($(#[$doc])* pub const $name: $of = $value;)*

        /// All of them, by the names that a plan shows: times in ns, sizes in bytes.
        pub const LIMITS: &[(&str, u64)] = &[$(($shown, $name as u64)),*];
    };
}

limits! {
    // Messages.

    /// Bytes of a request target; more is 414 (`docs/spec/serving.md#refused-messages`; RFC 9110 §15.5.15).
    "max_target" MAX_TARGET_BYTES: usize = Limits::TARGET;
    /// Bytes of a method; more is 400 (`docs/spec/serving.md#refused-messages`).
    "max_method" MAX_METHOD_BYTES: usize = Limits::METHOD;
    /// Empty lines before a request line that are skipped; more is 400 (RFC 9112 §2.2).
    "max_empty_lines" MAX_EMPTY_LINES: usize = Limits::EMPTY_LINES;
    /// Options over all Connection lines of a message; more is 400, of an origin 502 (RFC 9110 §7.6.1 sets no bound).
    "max_connection_options" MAX_CONNECTION_OPTIONS: usize = Limits::OPTIONS;
    /// Bytes of chunk extensions that a whole body may carry; more is 400, of an origin 502 (RFC 9112 §7.1.1,
    /// CVE-2023-39326).
    "max_chunk_extensions" MAX_CHUNK_EXTENSIONS_BYTES: usize = Limits::EXTENSIONS;
    /// Own hops in Via; more is 508 (`docs/spec/serving.md#fields`; RFC 9110 §7.6.3).
    "max_via_hops" MAX_VIA_HOPS: usize = Limits::OWN_HOPS;
    /// Bytes of an origin's head, and of its trailers; more is 502.
    "max_response_head" MAX_RESPONSE_HEAD_BYTES: usize = 32 * KIB;
    /// Fields of an origin's head, and of its trailers; more is 502.
    "max_response_headers" MAX_RESPONSE_HEADERS: usize = 100;
    /// Interim responses that an origin may send before its answer; more is 502 (RFC 9110 §15.2 sets no bound).
    "max_interim" MAX_INTERIM: u32 = 32;

    // Clients.

    /// Bytes of a PROXY header with what it carries; a longer one ends its connection.
    "max_proxy_header" MAX_PROXY_HEADER_BYTES: usize = 4 * KIB;
    /// Connections that wait to be accepted, for each loop of a TCP listener; the system may allow fewer (listen(2)).
    "accept_backlog" ACCEPT_BACKLOG: i32 = 4096;
    /// How long accepting pauses when the system has no descriptor or memory left.
    "accept_pause_ns" ACCEPT_PAUSE_NS: u64 = 50 * MS;
    /// Descriptors that half of the limit is lessened by: listeners, logs, timers; the rest is for clients
    /// (`docs/spec/serving.md#client-limits`).
    "descriptors_reserve" DESCRIPTORS_RESERVE: u64 = 64;
    /// Clients that may connect even where that leaves less.
    "min_clients" MIN_CLIENTS: u64 = 16;
    /// How long a client must have been idle after a whole answer before it is closed to make room
    /// (`docs/spec/serving.md#client-limits`).
    "idle_before_room_ns" IDLE_BEFORE_ROOM_NS: u64 = 100 * MS;
    /// How long a request waits for the thread that has the process's balancers; then it is 503.
    "owner_answer_ns" OWNER_ANSWER_NS: u64 = S;
    /// How long an event loop may be stuck before that is reported.
    "loop_stall_ns" LOOP_STALL_NS: u64 = S;
    /// Bytes of further requests that are read while one is answered, to see whether the client has gone
    /// (`docs/spec/serving.md#client-leaves`).
    "max_read_ahead" MAX_READ_AHEAD_BYTES: usize = 64 * KIB;
    /// Bytes that the system keeps unsent for a client before its socket counts as full (TCP_NOTSENT_LOWAT).
    "tcp_notsent_lowat" TCP_NOTSENT_LOWAT_BYTES: u32 = 128 * 1024;
    /// A lingering close ends after this silence of the client (`docs/spec/serving.md#lingering-close`; RFC 9112 §9.6).
    "linger_silence_ns" LINGER_SILENCE_NS: u64 = 2 * S;
    /// It ends after this time in all (`docs/spec/serving.md#lingering-close`).
    "linger_ns" LINGER_NS: u64 = 10 * S;
    /// Connections of one loop that linger; further ones close at once (`docs/spec/serving.md#lingering-close`).
    "max_lingering" MAX_LINGERING: u32 = 1000;
    /// A drain closes a connection that has been idle for this long in all, since its last answer or since it was
    /// accepted (`docs/spec/serving.md#drain`).
    "drain_idle_ns" DRAIN_IDLE_NS: u64 = 5 * S;

    // HTTP/2 (`docs/spec/serving.md#http2`).

    /// Bytes that a peer may send of one stream before some were written on.
    "h2_stream_window" H2_STREAM_WINDOW_BYTES: u32 = 64 * 1024;
    /// The same of all streams of a connection.
    "h2_connection_window" H2_CONNECTION_WINDOW_BYTES: u32 = 1024 * 1024;
    /// The same of a connection to an origin: as much as HTTP/2 allows. A connection takes no more requests than have
    /// room in it, each with the window of a stream, so a client that takes nothing of its answer holds up no other.
    "h2_origin_window" H2_ORIGIN_WINDOW_BYTES: u32 = i32::MAX as u32;
    /// How long an origin may be silent after a PING, which weir sends after a time-out, before its connection is
    /// closed (`docs/spec/serving.md#silent-connections`).
    "h2_ping_ns" H2_PING_NS: u64 = S;
    /// Bytes of a connection that wait for its socket; above it the streams keep theirs.
    "h2_send_buffer" H2_SEND_BUFFER_BYTES: usize = 64 * KIB;
    /// The part of the memory (or of the control group's limit) that bytes of HTTP/2 bodies may take while they wait:
    /// above it no window is given, nothing is read for slow readers, and accepting pauses.
    "h2_buffered_part" H2_BUFFERED_PART: u64 = 4;
    /// Above that, how long a client may read nothing of an answer before the answer is aborted.
    "h2_stalled_ns" H2_STALLED_NS: u64 = S;
    /// Frames that bring nothing (PING, SETTINGS, PRIORITY, resets, empty DATA) before a connection ends
    /// (ENHANCE_YOUR_CALM).
    "max_idle_frames" MAX_IDLE_FRAMES: u32 = 1000;
    /// The period in which they are counted.
    "max_idle_frames_ns" MAX_IDLE_FRAMES_NS: u64 = 10 * S;

    // Origins.

    /// How long an attempt to connect may take before the next address of a name is tried beside it (RFC 8305 §5).
    "next_address_ns" NEXT_ADDRESS_NS: u64 = 250 * MS;
    /// How long bytes to a peer (client or origin) may stay unacknowledged before it counts as vanished
    /// (`docs/spec/serving.md#sockets-and-signals`; TCP_USER_TIMEOUT).
    "tcp_user_timeout_ns" TCP_USER_TIMEOUT_NS: u64 = 30 * S;
    /// Silence of a peer before it is probed (TCP_KEEPIDLE).
    "tcp_keepalive_ns" TCP_KEEPALIVE_NS: u64 = 15 * S;
    /// Between two probes (TCP_KEEPINTVL).
    "tcp_keepalive_interval_ns" TCP_KEEPALIVE_INTERVAL_NS: u64 = 5 * S;
    /// Probes without an answer after which it has vanished (TCP_KEEPCNT).
    "tcp_keepalive_probes" TCP_KEEPALIVE_PROBES: u32 = 3;
    /// Idle connections that are kept, for each origin and loop.
    "max_idle_connections" MAX_IDLE_CONNECTIONS: usize = 1024;
    /// Bytes of a request that may wait for the origin before its client is read again.
    "max_upload_queue" MAX_UPLOAD_QUEUE_BYTES: usize = 64 * KIB;
    /// Bytes of an idempotent request's body that are kept in case its reused connection ends
    /// (`docs/spec/serving.md#resending`; RFC 9110 §9.2.2).
    "max_resend" MAX_RESEND_BYTES: usize = 64 * KIB;
    /// A client that expects a 100 gets it from weir after this silence of the origin (`docs/spec/serving.md#expect`;
    /// RFC 9110 §10.1.1).
    "continue_after_ns" CONTINUE_AFTER_NS: u64 = S;
    /// How long an exchange that `on_cancel` continues without its client may go without a byte
    /// (`docs/spec/serving.md#on-cancel`).
    "on_cancel_silence_ns" ON_CANCEL_SILENCE_NS: u64 = 30 * S;
    /// How long it may last in total, from its head on (`docs/spec/serving.md#on-cancel`).
    "on_cancel_drain_ns" ON_CANCEL_DRAIN_NS: u64 = 300 * S;

    // Health checks and rate limits.

    /// Bytes of the head that answers a health check; more does not pass.
    "max_check_head" MAX_CHECK_HEAD_BYTES: usize = 64 * KIB;
    /// Bytes behind that head which are read, so that the check does not end in a reset.
    "max_check_drain" MAX_CHECK_DRAIN_BYTES: usize = 256 * KIB;
    /// How long they are read.
    "check_drain_ns" CHECK_DRAIN_NS: u64 = S;
    /// Keys that a `limit.rate` remembers; beyond it the fullest buckets go.
    "max_rate_keys" MAX_RATE_KEYS: usize = weir_policy::rate::KEYS;

    // Names of origins.

    /// How long a start waits for first answers; a name without one by then is down until it arrives
    /// (`docs/spec/serving.md#targets`).
    "dns_start_ns" DNS_START_NS: u64 = 3 * S;
    /// An answer holds for its TTL, but for this at least.
    "dns_min_ttl_ns" DNS_MIN_TTL_NS: u64 = S;
    /// And for this at most.
    "dns_max_ttl_ns" DNS_MAX_TTL_NS: u64 = 60 * S;
    /// How long the last good answer is kept where there is none (RFC 8767 §5 allows days).
    "dns_stale_ns" DNS_STALE_NS: u64 = 3600 * S;
    /// The number of consecutive denials after which a name counts as gone.
    "dns_denials" DNS_DENIALS: u32 = 3;
    /// The longest pause after a first failure; it doubles with each further one.
    "dns_min_backoff_ns" DNS_MIN_BACKOFF_NS: u64 = S;
    /// The longest of all pauses.
    "dns_max_backoff_ns" DNS_MAX_BACKOFF_NS: u64 = 30 * S;

    // Time and logs.

    /// How often timeouts of connections and messages are looked at: they end so much late; those of nodes are exact.
    "timeout_step_ns" TIMEOUT_STEP_NS: u64 = 100 * MS;
    /// Lines that wait for the access log's writer; further ones are dropped, and counted there.
    "access_log_queue" ACCESS_LOG_QUEUE: usize = 8192;
    /// Bytes of a refused head's first line that the access log tells.
    "access_log_first_line" ACCESS_LOG_FIRST_LINE_BYTES: usize = KIB;
    /// How long the end of the process waits for the access log's last lines.
    "access_log_finish_ns" ACCESS_LOG_FINISH_NS: u64 = S;
    /// Lines a second on standard error, of failed requests, of connections of HTTP/2 and of all else each
    /// (`docs/spec/serving.md#sockets-and-signals`); further ones are left out, and counted.
    "error_log_rate_per_s" ERROR_LOG_RATE_PER_S: u32 = 10;
    /// Between two lines there which say that no client can be accepted.
    "accept_log_pause_ns" ACCEPT_LOG_PAUSE_NS: u64 = 10 * S;
    /// Lines that may wait for the reader of standard error.
    "error_log_queue" ERROR_LOG_QUEUE: usize = 64;
    /// How long the end of the process waits for the last of them.
    "error_log_finish_ns" ERROR_LOG_FINISH_NS: u64 = S;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Names are a plan's: unique, and a time says its unit.
    #[test]
    fn names_are_unique_and_in_snake_case() {
        let names: BTreeSet<_> = LIMITS.iter().map(|(name, _)| *name).collect();
        assert_eq!(names.len(), LIMITS.len());
        for (name, value) in LIMITS {
            assert!(
                name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_'),
                "{name}"
            );
            // The window of a connection is as many bytes as a millisecond has nanoseconds, and some.
            let is_time = *value >= MS && !name.ends_with("_window");
            assert!(*value > 0 && name.ends_with("_ns") == is_time, "{name}: {value}");
        }
    }
}
