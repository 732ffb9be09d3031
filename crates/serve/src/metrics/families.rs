//! All metrics: their names, labels and meaning. The exposition and the table in `docs/metrics.md` both come from here.

/// The type of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Counter,
    Gauge,
    Histogram,
    /// A gauge of 1 whose labels carry information.
    Info,
}

/// How the values of several threads are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Merge {
    Sum,
    Least,
    Most,
}

/// A family of series.
pub(crate) struct Family {
    /// The name in samples; those of a histogram have a suffix besides.
    pub name: &'static str,
    pub kind: Kind,
    pub merge: Merge,
    pub labels: &'static [&'static str],
    /// One sentence, without characters that either format would have to escape.
    pub help: &'static str,
}

impl Family {
    /// Its unit, which is the last word of its name.
    pub fn unit(&self) -> Option<&'static str> {
        let name = self.name.strip_suffix("_total").unwrap_or(self.name);
        ["seconds", "bytes", "ratio"]
            .into_iter()
            .find(|unit| name.strip_suffix(unit).is_some_and(|n| n.ends_with('_')))
    }

    /// The name in OpenMetrics.
    pub fn open_name(&self) -> &'static str {
        let ending = match self.kind {
            Kind::Counter => "_total",
            Kind::Info => "_info",
            Kind::Gauge | Kind::Histogram => "",
        };
        self.name.strip_suffix(ending).unwrap_or(self.name)
    }
}

macro_rules! families {
    ($($id:ident $kind:ident $merge:ident $name:literal [$($label:literal),*] $help:literal;)*) => {
        /// One of [`FAMILIES`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum Id { $($id),* }

        /// In the order of the exposition.
        pub(crate) static FAMILIES: &[Family] = &[$(Family {
            name: $name,
            kind: Kind::$kind,
            merge: Merge::$merge,
            labels: &[$($label),*],
            help: $help,
        }),*];
    };
}

families! {
    BuildInfo Info Most "weir_build_info" ["version"] "The version of weir.";
    ConfigGeneration Gauge Most "weir_config_generation" [] "The generation of the topology that is served: 0 at the start, one more with each reload that was applied and each hand-over.";
    Ready Gauge Least "weir_ready" [] "Whether /ready says that requests can be sent here (1), or not (0).";
    ConfigReloads Counter Sum "weir_config_reloads_total" ["result"] "Reloads, by result.";

    Requests Counter Sum "weir_requests_total" ["listener", "method", "code", "protocol"] "Finished requests, each once, by the status that the client saw: 499 if its answer was incomplete, none if there was no head of an answer, other above 599.";
    RequestErrors Counter Sum "weir_request_errors_total" ["listener", "kind"] "Finished requests that were not ok, by the kind of error.";
    RequestPanics Counter Sum "weir_request_panics_total" ["listener"] "Requests that a defect of weir ended: please report the line of the error log.";
    RequestDuration Histogram Sum "weir_request_duration_seconds" ["listener"] "Time from the head of a request to the end of its exchange; 0 if the request was answered for its head alone.";
    RequestsInFlight Gauge Sum "weir_requests_in_flight" ["listener"] "Requests in flight.";
    Connections Gauge Sum "weir_connections" ["listener", "state"] "Client connections; an idle one has had its answers and sends no request.";
    ConnectionsLimit Gauge Least "weir_connections_limit" ["listener"] "How many clients may be connected: max_clients of the listener, or what all listeners without it have in common.";
    ConnectionsAccepted Counter Sum "weir_connections_accepted_total" ["listener"] "Client connections accepted.";
    ConnectionsClosed Counter Sum "weir_connections_closed_total" ["listener", "reason"] "Client connections closed, by reason.";
    LimitReached Counter Sum "weir_limit_reached_total" ["limit"] "How often a client had to wait or was turned away, or a request ended, at a limit of the process, of a listener or of a server.";
    RequestBytes Counter Sum "weir_request_bytes_total" ["listener"] "Bytes of the bodies of finished requests, as far as they were read.";
    ResponseBytes Counter Sum "weir_response_bytes_total" ["listener"] "Bytes of the bodies of finished answers, as far as clients accepted them.";
    BadRequests Counter Sum "weir_bad_requests_total" ["listener", "rule"] "Client messages that broke a rule of HTTP or exceeded a limit, by rule.";
    TlsHandshakes Counter Sum "weir_tls_handshakes_total" ["listener", "result"] "Finished TLS handshakes with clients, by result.";
    TlsNotAfter Gauge Least "weir_tls_certificate_not_after_seconds" ["listener", "name"] "When a certificate expires, in seconds since 1970; name is the file that it was read from.";

    Attempts Counter Sum "weir_attempts_total" ["pool", "target", "outcome"] "Finished attempts at a target, from the pick to the end of the answer, by outcome.";
    AttemptDuration Histogram Sum "weir_attempt_duration_seconds" ["pool"] "Time from the pick of a target to the head of its answer.";
    AttemptsInFlight Gauge Sum "weir_attempts_in_flight" ["pool", "target"] "Attempts in flight at a target.";
    ConnectDuration Histogram Sum "weir_connect_duration_seconds" ["pool"] "Time to connect to a target, TLS included; failed connections are not counted.";
    UpstreamConnections Gauge Sum "weir_upstream_connections" ["pool", "target", "state"] "Connections to a target; idle ones carry no request.";
    UpstreamOpened Counter Sum "weir_upstream_connections_opened_total" ["pool", "target"] "Connections opened to a target.";
    UpstreamReused Counter Sum "weir_upstream_connections_reused_total" ["pool", "target"] "Attempts on an existing connection.";
    UpstreamClosed Counter Sum "weir_upstream_connections_closed_total" ["pool", "target", "reason"] "Connections to a target closed, by reason.";
    UpstreamOpen Gauge Sum "weir_upstream_open" ["pool", "protocol"] "Open connections to the targets of a pool, by version of HTTP.";
    UpstreamStreams Gauge Sum "weir_upstream_streams" ["pool"] "Requests on connections of HTTP/2 to the targets of a pool.";
    UpstreamHandshakes Counter Sum "weir_upstream_tls_handshakes_total" ["pool", "result"] "TLS handshakes with the targets of a pool: full ones, those that resumed a session, failed ones.";
    Resends Counter Sum "weir_resends_total" ["pool"] "Requests sent again because their connection ended before any answer, or the origin refused the stream.";

    Retries Counter Sum "weir_retries_total" ["node", "kind"] "Further attempts of a retry, by the outcome of the attempt before; ok if a status below 500 was retried.";
    RetriesDenied Counter Sum "weir_retries_denied_total" ["node", "reason"] "Failures that qualified for a further attempt but got none, by reason.";
    BudgetTokens Gauge Sum "weir_budget_tokens" ["node"] "Further attempts that the budget currently allows.";
    Hedges Counter Sum "weir_hedges_total" ["node", "won"] "Further attempts of a hedge, by whether they gave the answer.";

    QueueInside Gauge Sum "weir_queue_inside" ["node"] "Requests inside a queue, or at limited targets.";
    QueueWaiting Gauge Sum "weir_queue_waiting" ["node"] "Requests waiting there.";
    QueueWait Histogram Sum "weir_queue_wait_seconds" ["node"] "Time that requests waited before they entered; 0 if there was room at once.";
    QueueRejected Counter Sum "weir_queue_rejected_total" ["node", "reason"] "Requests that did not enter, by reason.";
    Limited Counter Sum "weir_limited_total" ["node"] "Requests that a rate limit rejected.";

    TargetEligible Gauge Least "weir_target_eligible" ["pool", "target"] "Whether health, and what was set by hand, let the target be picked (1) or not (0).";
    TargetShare Gauge Least "weir_target_share_ratio" ["pool", "target"] "The share of its weight that the target has: 0 while it is not eligible, that of its ramp while slow_start holds it back, otherwise 1.";
    TargetChanged Gauge Most "weir_target_changed_seconds" ["pool", "target"] "When the target last came or went, seconds since 1970; without a value it is as it was at the start.";
    TargetLoad Gauge Most "weir_target_load" ["pool", "target"] "The load that the target has reported last in an answer (lb.zuul), 0 to 1; without a value it has reported none.";
    TargetOut Counter Sum "weir_target_out_seconds_total" ["pool", "target", "reason"] "Time during which the target was not eligible, by reason.";
    Ejections Counter Sum "weir_ejections_total" ["pool", "target", "reason"] "Ejections after failures, by reason.";
    HealthChecks Counter Sum "weir_health_checks_total" ["pool", "target", "result"] "Finished health checks, by result: passed, refused (no connection), timeout, status (one that does not pass), failed (otherwise); skipped if weir itself had no descriptor left.";
    Panic Gauge Most "weir_panic" ["pool"] "Whether so few targets are eligible that health is ignored (1) or not (0).";
    Targets Gauge Sum "weir_targets" ["pool", "state"] "Targets by state.";

    Subsets Gauge Most "weir_subsets" ["pool"] "How many subsets the targets are divided into, where event loops prefer some of them.";
    SubsetTargets Gauge Most "weir_subset_targets" ["pool", "bound"] "Targets of the smallest (least) and the largest (most) subset.";
    SubsetMoves Counter Sum "weir_subset_moves_total" ["pool"] "Targets that stayed but came into another subset, so that subsets remain equal.";
    SubsetBorrowed Counter Sum "weir_subset_borrowed_total" ["pool"] "Picks of a target outside of the loop's subset: none inside might be picked, or a cookie said so.";

    FleetMembers Gauge Sum "weir_fleet_members" ["fleet", "state"] "Members of a fleet that a source lists: picked (up), without new requests (drain), or picked although the last list, which was too short to be believed at once, lacks them (withdrawn).";
    FleetLists Counter Sum "weir_fleet_lists_total" ["fleet", "result"] "Lists of a fleet's source, by result: it changed members, changed none, was doubted for its shortness, or there was none (failed: each question without a list, also where the log does not repeat why).";
    FleetChanges Counter Sum "weir_fleet_changes_total" ["fleet", "change"] "Members that were added, removed or changed (weight, drain).";
    FleetStale Gauge Most "weir_fleet_stale_seconds" ["fleet"] "For how long the source of a fleet has given no list, of one that never gave any since it began to be asked; 0 while it gives one.";

    LoopLag Histogram Sum "weir_loop_lag_seconds" [] "How late the clock of an event loop ticked, with what the system takes to wake the loop; it ticks ten times a second, unless nothing comes to the loop.";
    LoopBusy Gauge Most "weir_loop_busy_ratio" ["loop"] "The share of the last second in which the thread of an event loop ran.";
    LogLinesSampled Counter Sum "weir_log_lines_sampled_total" ["listener"] "Lines of the access log that `log_sample` left out.";
    LogLinesLost Counter Sum "weir_log_lines_lost_total" [] "Lines of access logs that could not be written.";

    ProcessCpu Counter Sum "process_cpu_seconds_total" [] "CPU time of the process, user and system.";
    ProcessResident Gauge Most "process_resident_memory_bytes" [] "Resident memory of the process.";
    ProcessVirtual Gauge Most "process_virtual_memory_bytes" [] "Virtual memory of the process.";
    ProcessOpenFds Gauge Most "process_open_fds" [] "Open file descriptors.";
    ProcessMaxFds Gauge Most "process_max_fds" [] "The limit of open file descriptors.";
    ProcessThreads Gauge Most "process_threads" [] "Threads of the process.";
    ProcessStart Gauge Most "process_start_time_seconds" [] "Start time of the process, in seconds since 1970.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_as_both_formats_want_them() {
        for family in FAMILIES {
            let (name, is_counter) = (family.name, family.kind == Kind::Counter);
            assert_eq!(name.ends_with("_total"), is_counter, "{name}");
            assert!(name.starts_with("weir_") || name.starts_with("process_"), "{name}");
            assert!(family.help.ends_with('.') && !family.help.contains(['\\', '\n', '"']), "{name}");
            assert!(family.kind != Kind::Histogram || family.unit() == Some("seconds"), "{name}");
            assert_eq!(FAMILIES.iter().filter(|f| f.open_name() == family.open_name()).count(), 1, "{name}");
        }
    }

    /// `cargo test` prints what the table of the documentation should be.
    #[test]
    fn the_documentation_has_each_of_them() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");
        let text = std::fs::read_to_string(path).unwrap();
        let table: Vec<String> = FAMILIES
            .iter()
            .map(|family| {
                let labels: Vec<String> = family.labels.iter().map(|label| format!("`{label}`")).collect();
                let kind = match family.kind {
                    Kind::Counter => "counter",
                    Kind::Gauge => "gauge",
                    Kind::Histogram => "histogram",
                    Kind::Info => "info",
                };
                let unit = family.unit().map(|unit| format!(", {unit}")).unwrap_or_default();
                format!("| `{}` | {kind}{unit} | {} | {} |", family.name, labels.join(", "), family.help)
            })
            .collect();
        let there: Vec<&str> =
            text.lines().filter(|l| l.starts_with("| `weir_") || l.starts_with("| `process_")).collect();
        assert!(there == table, "the table of docs/metrics.md should be:\n{}", table.join("\n"));
    }
}
