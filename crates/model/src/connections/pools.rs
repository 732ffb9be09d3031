//! The pools: rows, the connections in them, and the order in which they end.

use super::meters::{Counts, Level, Meter};
use super::{End, Instance, Limits, Pair, Server};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

/// A row, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RowId(u32);

/// A connection, by number; a number is used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnId(pub u32);

/// What a request that comes to a server does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Come {
    /// It takes this connection.
    Takes(ConnId),
    /// It opens one.
    Opens,
    /// It waits for the one that another request opens.
    Waits,
}

/// A request, as its engine names it.
pub type Opener = u32;

const NONE: u32 = u32::MAX;

/// The connections of one loop to one server.
#[derive(Clone, Copy, Debug)]
struct Row {
    key: u64,
    /// By HTTP/1.1 the idle ones, the last given back first; by HTTP/2 all that are open, the oldest first.
    first: u32,
    last: u32,
    /// By HTTP/2: the request that opens one.
    opener: u32,
    /// Whether its server or its instance has left.
    is_gone: bool,
}

// Rows are many: one for each pair of loop and server that ever met.
const _: () = assert!(size_of::<Row>() <= 24);

#[derive(Clone, Copy, Debug)]
struct Conn {
    row: u32,
    /// Requests on it; and those that it has carried, these included.
    streams: u32,
    carried: u64,
    /// When it became idle, if it is; and when it is too old.
    idle_since_ns: u64,
    old_ns: u64,
    /// The next and the one before in the row's list, and among idle ones of the same limit.
    in_row: Links,
    in_line: Links,
    state: State,
    /// Whether it has no request: then it is in its line.
    is_idle: bool,
    /// Counts the connections that had this number.
    serial: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Idle, or with requests.
    Open,
    /// It ended under its requests.
    Closed,
    /// Its number is free.
    Free,
}

#[derive(Clone, Copy, Debug)]
struct Links {
    next: u32,
    before: u32,
}

impl Default for Links {
    fn default() -> Links {
        Links { next: NONE, before: NONE }
    }
}

/// Idle connections of servers with one limit, the one that has been idle for longest first.
#[derive(Clone, Copy, Debug)]
struct Line {
    idle_ns: u64,
    first: u32,
    last: u32,
}

/// A hasher of row keys, which are distinct numbers: a product spreads them.
#[derive(Default)]
struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, n: u64) {
        let product = u128::from(self.0 ^ n) * 0x9E37_79B9_7F4A_7C15;
        self.0 = (product >> 64) as u64 ^ product as u64;
    }
}

/// The row of a pair. The order of its keys has no effect: nothing iterates over it.
#[expect(clippy::disallowed_types, reason = "two lookups a request: a tree of a million pairs is slower")]
type RowOf = std::collections::HashMap<u64, u32, BuildHasherDefault<Spread>>;

/// All connections of a run.
pub struct Pools {
    servers: Vec<Server>,
    instances: Vec<Instance>,
    row_of: RowOf,
    rows: Vec<Row>,
    conns: Vec<Conn>,
    free: Vec<u32>,
    /// By row, the requests that wait for the connection that is being opened.
    waiting: BTreeMap<u32, VecDeque<Opener>>,
    lines: Vec<Line>,
    /// By server, its line.
    line_of: Vec<Option<u32>>,
    /// When connections are too old: instant, number, serial.
    old: BinaryHeap<Reverse<(u64, u32, u32)>>,
    /// Servers that have left for an instance, and instances that have left.
    gone_servers: BTreeSet<(u32, u32)>,
    gone_instances: BTreeSet<u32>,
    meters: Vec<Meter>,
    of_server: Vec<Level>,
    of_instance: Vec<Level>,
    /// Whether the run is over: what is still on its way is lost, and its connections stay as they are.
    is_over: bool,
}

impl Pools {
    /// Without any connection. Group 0 has all of them; servers and instances name others.
    pub fn new(servers: Vec<Server>, instances: Vec<Instance>) -> Pools {
        let groups = servers.iter().map(|s| s.group).chain(instances.iter().filter_map(|i| i.group)).max();
        let mut lines: Vec<Line> = Vec::new();
        let mut line = |server: &Server| {
            let idle_ns = server.limits.idle_ns?;
            let known = lines.iter().position(|line| line.idle_ns == idle_ns);
            Some(known.unwrap_or_else(|| {
                lines.push(Line { idle_ns, first: NONE, last: NONE });
                lines.len() - 1
            }) as u32)
        };
        let line_of = servers.iter().map(&mut line).collect();
        Pools {
            meters: vec![Meter::default(); groups.unwrap_or(0) as usize + 1],
            of_server: vec![Level::default(); servers.len()],
            of_instance: vec![Level::default(); instances.len()],
            servers,
            instances,
            row_of: RowOf::default(),
            rows: Vec::new(),
            conns: Vec::new(),
            free: Vec::new(),
            waiting: BTreeMap::new(),
            lines,
            line_of,
            old: BinaryHeap::new(),
            gone_servers: BTreeSet::new(),
            gone_instances: BTreeSet::new(),
            is_over: false,
        }
    }

    /// The row of a pair.
    pub fn row(&mut self, of: Pair) -> RowId {
        let rows = &mut self.rows;
        let (gone_servers, gone_instances) = (&self.gone_servers, &self.gone_instances);
        let number = self.row_of.entry(key(of)).or_insert_with(|| {
            let is_gone = !gone_instances.is_empty() && gone_instances.contains(&of.instance)
                || !gone_servers.is_empty() && gone_servers.contains(&(of.instance, of.server));
            if rows.len() == rows.capacity() {
                // By a quarter: a vector would double.
                rows.reserve_exact(rows.len() / 4 + 16);
            }
            rows.push(Row { key: key(of), first: NONE, last: NONE, opener: NONE, is_gone });
            rows.len() as u32 - 1
        });
        RowId(*number)
    }

    /// A request comes to a server. Instants never go back, here and below.
    pub fn come(&mut self, row: RowId, who: Opener, now_ns: u64) -> Come {
        self.expire(now_ns);
        let found = self.usable(row, now_ns);
        self.each_meter(row, |meter| {
            meter.came += 1;
            meter.found += u64::from(found.is_some());
        });
        if let Some(conn) = found {
            self.load(conn, now_ns);
            return Come::Takes(ConnId(conn));
        }
        if self.limits(row).streams.is_none() {
            return Come::Opens;
        }
        let opener = &mut self.rows[row.0 as usize].opener;
        if *opener == NONE {
            *opener = who;
            return Come::Opens;
        }
        self.waiting.entry(row.0).or_default().push_back(who);
        Come::Waits
    }

    /// A connection is open, and the request that opened it is on it. Its limit of age is reached `sooner_ns` earlier.
    pub fn opened(&mut self, row: RowId, now_ns: u64, sooner_ns: u64) -> ConnId {
        self.expire(now_ns);
        let Server { limits, tls, .. } = self.servers[self.pair(row).server as usize];
        self.rows[row.0 as usize].opener = NONE;
        let old_ns =
            limits.age_ns.map_or(u64::MAX, |age| now_ns.saturating_add(age.saturating_sub(sooner_ns)));
        let new = |serial| Conn {
            row: row.0,
            streams: 0,
            carried: 0,
            idle_since_ns: now_ns,
            old_ns,
            in_row: Links::default(),
            in_line: Links::default(),
            state: State::Open,
            is_idle: false,
            serial,
        };
        let conn = match self.free.pop() {
            Some(conn) => {
                self.conns[conn as usize] = new(self.conns[conn as usize].serial.wrapping_add(1));
                conn
            }
            None => {
                self.conns.push(new(0));
                self.conns.len() as u32 - 1
            }
        };
        if old_ns < u64::MAX {
            self.old.push(Reverse((old_ns, conn, self.conns[conn as usize].serial)));
        }
        if limits.streams.is_some() {
            self.append_to_row(conn);
        }
        self.each_meter(row, |meter| {
            meter.open.add(now_ns, 1);
            meter.peak = meter.peak.max(meter.open.now() as u64);
            meter.opened += 1;
            meter.handshakes += u64::from(tls);
        });
        self.count_members(row, now_ns, 1);
        self.begin(conn, now_ns);
        ConnId(conn)
    }

    /// The next request that waited for a connection and now has one with room, with that connection.
    pub fn next_to_go(&mut self, row: RowId, now_ns: u64) -> Option<(Opener, ConnId)> {
        let waiting = self.waiting.get(&row.0).is_some_and(|waiting| !waiting.is_empty());
        let conn = if waiting { self.usable(row, now_ns)? } else { return None };
        let who = self.next_waiting(row)?;
        self.load(conn, now_ns);
        Some((who, ConnId(conn)))
    }

    /// The first request that still waits: it opens the next connection.
    pub fn next_opener(&mut self, row: RowId) -> Option<Opener> {
        let who = self.next_waiting(row)?;
        self.rows[row.0 as usize].opener = who;
        Some(who)
    }

    /// A connection could not be opened. Each call returns one of the requests that waited for it, which fail too.
    pub fn next_to_fail(&mut self, row: RowId) -> Option<Opener> {
        self.rows[row.0 as usize].opener = NONE;
        self.next_waiting(row)
    }

    /// Removes a request that opens a connection or waits for one. Returns the request that opens it instead, if any.
    pub fn abandon(&mut self, row: RowId, who: Opener) -> Option<Opener> {
        self.limits(row).streams?;
        if self.rows[row.0 as usize].opener == who {
            self.rows[row.0 as usize].opener = NONE;
            return self.next_opener(row);
        }
        if let Some(waiting) = self.waiting.get_mut(&row.0) {
            waiting.retain(|other| *other != who);
        }
        None
    }

    /// The run is over. Requests that are still on their way are given back, and no connection ends by that.
    pub fn end_run(&mut self) {
        self.is_over = true;
    }

    /// A request is over, or was broken off.
    pub fn give_back(&mut self, conn: ConnId, now_ns: u64, is_broken_off: bool) {
        self.expire(now_ns);
        let conn = conn.0;
        let row = RowId(self.conns[conn as usize].row);
        let of = &mut self.conns[conn as usize];
        of.streams -= 1;
        let rests = of.streams == 0;
        let (state, carried, old_ns) = (of.state, of.carried, of.old_ns);
        self.each_meter(row, |meter| {
            meter.requests.add(now_ns, -1);
            meter.busy.add(now_ns, -i64::from(rests));
        });
        if self.is_over {
            return;
        }
        if state == State::Closed {
            if rests {
                self.release(conn);
            }
            return;
        }
        let limits = self.limits(row);
        if is_broken_off && limits.streams.is_none() {
            return self.close(conn, now_ns, End::Exchange);
        }
        if !rests {
            return;
        }
        if self.rows[row.0 as usize].is_gone {
            self.close(conn, now_ns, End::Spare);
        } else if limits.requests.is_some_and(|most| carried >= most) || old_ns <= now_ns {
            self.close(conn, now_ns, End::Age);
        } else {
            self.rest(conn, now_ns);
        }
    }

    /// A proxy sees that a server has left: idle connections end now, others after their last request.
    pub fn server_leaves(&mut self, instance: u32, server: u32, now_ns: u64) {
        self.expire(now_ns);
        self.gone_servers.insert((instance, server));
        self.each_row(instance, server, |pools, row| pools.leave(row, now_ns));
    }

    /// A proxy sees that a server is there again.
    pub fn server_returns(&mut self, instance: u32, server: u32) {
        if self.gone_servers.remove(&(instance, server)) {
            self.each_row(instance, server, |pools, row| pools.rows[row as usize].is_gone = false);
        }
    }

    /// A proxy leaves: idle connections end now, others after their last request.
    pub fn instance_leaves(&mut self, instance: u32, now_ns: u64) {
        self.expire(now_ns);
        self.gone_instances.insert(instance);
        for server in 0..self.servers.len() as u32 {
            self.each_row(instance, server, |pools, row| pools.leave(row, now_ns));
        }
    }

    /// The process of a server ends: its connections end with it. Those of HTTP/1.1 that carry a request end when that has
    /// come back.
    pub fn process_ends(&mut self, server: u32, now_ns: u64) {
        self.expire(now_ns);
        for instance in 0..self.instances.len() as u32 {
            self.each_row(instance, server, |pools, row| {
                while let Some(conn) = some(pools.rows[row as usize].first) {
                    pools.close(conn, now_ns, End::Exchange);
                }
            });
        }
    }

    /// All counts, from the start of the run to an instant that has not passed.
    pub fn counts(&mut self, at_ns: u64) -> Counts {
        self.expire(at_ns);
        let each = |levels: &[Level]| levels.iter().map(|level| level.until(at_ns)).collect();
        Counts {
            groups: self.meters.iter().map(|meter| meter.until(at_ns)).collect(),
            servers_ns: each(&self.of_server),
            instances_ns: each(&self.of_instance),
        }
    }

    /// Requests that are on connections, or wait for one: none at the end of a run.
    pub fn requests(&self) -> u64 {
        let waiting = self.waiting.values().map(|waiting| waiting.len() as u64).sum::<u64>();
        let opening = self.rows.iter().filter(|row| row.opener != NONE).count() as u64;
        self.meters.first().map_or(0, |all| all.requests.now().max(0) as u64) + waiting + opening
    }

    /// The bytes that rows take: entries of the table, a byte of its own for each, and the rows.
    #[cfg(test)]
    pub(super) fn room(&self) -> usize {
        self.row_of.capacity() * 8 / 7 * (size_of::<(u64, u32)>() + 1)
            + self.rows.capacity() * size_of::<Row>()
    }

    /// Ends the connections whose time is over before an instant.
    fn expire(&mut self, now_ns: u64) {
        for line in 0..self.lines.len() {
            let Line { idle_ns, .. } = self.lines[line];
            while let Some(conn) = some(self.lines[line].first) {
                let since_ns = self.conns[conn as usize].idle_since_ns;
                // At the very end of its time it can still be taken.
                if now_ns.saturating_sub(since_ns) <= idle_ns {
                    break;
                }
                self.close_in_time(conn);
            }
        }
        while let Some(&Reverse((at_ns, conn, serial))) = self.old.peek().filter(|old| old.0.0 <= now_ns) {
            self.old.pop();
            let of = &self.conns[conn as usize];
            if of.is_idle && (of.serial, of.old_ns) == (serial, at_ns) {
                self.close_in_time(conn);
            }
        }
    }

    /// Ends an idle connection when it has been idle for too long, or is too old, whichever comes first.
    fn close_in_time(&mut self, conn: u32) {
        let Conn { row, idle_since_ns, old_ns, .. } = self.conns[conn as usize];
        let idle_ns = self.limits(RowId(row)).idle_ns.unwrap_or(u64::MAX);
        let idle_ns = idle_since_ns.saturating_add(idle_ns);
        match old_ns < idle_ns {
            true => self.close(conn, old_ns, End::Age),
            false => self.close(conn, idle_ns, End::Idle),
        }
    }

    /// A connection that a request can take.
    fn usable(&self, row: RowId, now_ns: u64) -> Option<u32> {
        let limits = self.limits(row);
        let mut at = some(self.rows[row.0 as usize].first);
        let Some(streams) = limits.streams else { return at };
        while let Some(conn) = at {
            let of = &self.conns[conn as usize];
            let is_young = of.old_ns > now_ns && limits.requests.is_none_or(|most| of.carried < most);
            if of.streams < streams && is_young {
                return Some(conn);
            }
            at = some(of.in_row.next);
        }
        None
    }

    /// A request begins on a connection of the row's list.
    fn load(&mut self, conn: u32, now_ns: u64) {
        if std::mem::take(&mut self.conns[conn as usize].is_idle) {
            self.leave_line(conn);
            if self.limits(RowId(self.conns[conn as usize].row)).streams.is_none() {
                self.leave_row(conn);
            }
        }
        self.begin(conn, now_ns);
    }

    fn begin(&mut self, conn: u32, now_ns: u64) {
        let of = &mut self.conns[conn as usize];
        let rested = of.streams == 0;
        of.streams += 1;
        of.carried += 1;
        let row = RowId(of.row);
        self.each_meter(row, |meter| {
            meter.requests.add(now_ns, 1);
            meter.busy.add(now_ns, i64::from(rested));
        });
    }

    /// A connection is idle from now on.
    fn rest(&mut self, conn: u32, now_ns: u64) {
        self.conns[conn as usize].idle_since_ns = now_ns;
        self.conns[conn as usize].is_idle = true;
        let row = self.conns[conn as usize].row;
        if self.limits(RowId(row)).streams.is_none() {
            let first = std::mem::replace(&mut self.rows[row as usize].first, conn);
            self.conns[conn as usize].in_row = Links { next: first, before: NONE };
            match some(first) {
                Some(first) => self.conns[first as usize].in_row.before = conn,
                None => self.rows[row as usize].last = conn,
            }
        }
        let Some(line) = self.line_of[self.pair(RowId(row)).server as usize] else { return };
        let line = &mut self.lines[line as usize];
        let last = std::mem::replace(&mut line.last, conn);
        self.conns[conn as usize].in_line = Links { next: NONE, before: last };
        match some(last) {
            Some(last) => self.conns[last as usize].in_line.next = conn,
            None => line.first = conn,
        }
    }

    /// A connection ends.
    fn close(&mut self, conn: u32, at_ns: u64, why: End) {
        let Conn { row, streams, .. } = self.conns[conn as usize];
        let is_h2 = self.limits(RowId(row)).streams.is_some();
        let is_idle = std::mem::take(&mut self.conns[conn as usize].is_idle);
        if is_idle {
            self.leave_line(conn);
        }
        // One of HTTP/1.1 that carries a request is in no list.
        if is_h2 || is_idle {
            self.leave_row(conn);
        }
        self.each_meter(RowId(row), |meter| {
            meter.open.add(at_ns, -1);
            meter.closed[why as usize] += 1;
        });
        self.count_members(RowId(row), at_ns, -1);
        self.conns[conn as usize].state = State::Closed;
        if streams == 0 {
            self.release(conn);
        }
    }

    fn release(&mut self, conn: u32) {
        self.conns[conn as usize].state = State::Free;
        self.free.push(conn);
    }

    /// The server or the instance of a row has left.
    fn leave(&mut self, row: u32, now_ns: u64) {
        self.rows[row as usize].is_gone = true;
        let mut at = some(self.rows[row as usize].first);
        while let Some(conn) = at {
            at = some(self.conns[conn as usize].in_row.next);
            if self.conns[conn as usize].streams == 0 {
                self.close(conn, now_ns, End::Spare);
            }
        }
    }

    fn each_row(&mut self, instance: u32, server: u32, mut take: impl FnMut(&mut Pools, u32)) {
        for on in 0..self.instances[instance as usize].loops {
            if let Some(&row) = self.row_of.get(&key(Pair { instance, on, server })) {
                take(self, row);
            }
        }
    }

    fn next_waiting(&mut self, row: RowId) -> Option<Opener> {
        let waiting = self.waiting.get_mut(&row.0)?;
        let next = waiting.pop_front();
        if waiting.is_empty() {
            self.waiting.remove(&row.0);
        }
        next
    }

    fn append_to_row(&mut self, conn: u32) {
        let row = &mut self.rows[self.conns[conn as usize].row as usize];
        let last = std::mem::replace(&mut row.last, conn);
        self.conns[conn as usize].in_row = Links { next: NONE, before: last };
        match some(last) {
            Some(last) => self.conns[last as usize].in_row.next = conn,
            None => row.first = conn,
        }
    }

    fn leave_row(&mut self, conn: u32) {
        let Conn { row, in_row: Links { next, before }, .. } = self.conns[conn as usize];
        self.conns[conn as usize].in_row = Links::default();
        match some(before) {
            Some(before) => self.conns[before as usize].in_row.next = next,
            None => self.rows[row as usize].first = next,
        }
        match some(next) {
            Some(next) => self.conns[next as usize].in_row.before = before,
            None => self.rows[row as usize].last = before,
        }
    }

    fn leave_line(&mut self, conn: u32) {
        let Conn { row, in_line: Links { next, before }, .. } = self.conns[conn as usize];
        let Some(line) = self.line_of[self.pair(RowId(row)).server as usize] else { return };
        self.conns[conn as usize].in_line = Links::default();
        match some(before) {
            Some(before) => self.conns[before as usize].in_line.next = next,
            None => self.lines[line as usize].first = next,
        }
        match some(next) {
            Some(next) => self.conns[next as usize].in_line.before = before,
            None => self.lines[line as usize].last = before,
        }
    }

    fn pair(&self, row: RowId) -> Pair {
        pair(self.rows[row.0 as usize].key)
    }

    fn limits(&self, row: RowId) -> Limits {
        self.servers[self.pair(row).server as usize].limits
    }

    fn each_meter(&mut self, row: RowId, mut change: impl FnMut(&mut Meter)) {
        let Pair { instance, server, .. } = self.pair(row);
        change(&mut self.meters[0]);
        change(&mut self.meters[self.servers[server as usize].group as usize]);
        if let Some(group) = self.instances[instance as usize].group {
            change(&mut self.meters[group as usize]);
        }
    }

    fn count_members(&mut self, row: RowId, at_ns: u64, by: i64) {
        let Pair { instance, server, .. } = self.pair(row);
        self.of_server[server as usize].add(at_ns, by);
        self.of_instance[instance as usize].add(at_ns, by);
    }
}

fn some(number: u32) -> Option<u32> {
    (number != NONE).then_some(number)
}

/// Bits of a loop and of an instance in a key: a listener has at most 1,024 loops.
const LOOP_BITS: u32 = 10;
const INSTANCE_BITS: u32 = 22;

fn key(Pair { instance, on, server }: Pair) -> u64 {
    debug_assert!(on < 1 << LOOP_BITS && instance < 1 << INSTANCE_BITS);
    u64::from(instance) << (32 + LOOP_BITS) | u64::from(on) << 32 | u64::from(server)
}

fn pair(key: u64) -> Pair {
    Pair {
        instance: (key >> (32 + LOOP_BITS)) as u32,
        on: (key >> 32) as u32 & ((1 << LOOP_BITS) - 1),
        server: key as u32,
    }
}
