//! The pools against a twin that keeps a list of connections and looks at all of them.

use super::*;
use weir_stats::Key;

/// A connection of the twin.
#[derive(Clone, Debug)]
struct Plain {
    number: u32,
    pair: Pair,
    opened_ns: u64,
    old_ns: u64,
    streams: u32,
    carried: u64,
    idle_since_ns: Option<u64>,
    is_closed: bool,
}

/// What is counted of all connections.
#[derive(Clone, Debug, Default, PartialEq)]
struct Tally {
    open_ns: i128,
    peak: u64,
    opened: u64,
    closed: [u64; 5],
    came: u64,
    found: u64,
}

#[derive(Default)]
struct Twin {
    limits: Vec<Limits>,
    conns: Vec<Plain>,
    opening: Vec<(Pair, u32)>,
    waiting: Vec<(Pair, u32)>,
    gone: Vec<Pair>,
    tally: Tally,
}

impl Twin {
    fn limits(&self, pair: Pair) -> Limits {
        self.limits[pair.server as usize]
    }

    fn end(&mut self, at: usize, at_ns: u64, why: End) {
        let conn = &mut self.conns[at];
        conn.is_closed = true;
        conn.idle_since_ns = None;
        self.tally.open_ns += i128::from(at_ns) - i128::from(conn.opened_ns);
        self.tally.closed[why as usize] += 1;
    }

    fn expire(&mut self, now_ns: u64) {
        for at in 0..self.conns.len() {
            let conn = &self.conns[at];
            let Some(since_ns) = conn.idle_since_ns else { continue };
            let idle_ns = since_ns + self.limits(conn.pair).idle_ns.unwrap_or(u64::MAX / 4);
            let old_ns = conn.old_ns;
            if old_ns < idle_ns && old_ns <= now_ns {
                self.end(at, old_ns, End::Age);
            } else if idle_ns < now_ns || old_ns == idle_ns && old_ns <= now_ns {
                self.end(at, idle_ns, End::Idle);
            }
        }
    }

    fn usable(&self, pair: Pair, now_ns: u64) -> Option<usize> {
        let limits = self.limits(pair);
        let own =
            (0..self.conns.len()).filter(|at| !self.conns[*at].is_closed && self.conns[*at].pair == pair);
        match limits.streams {
            None => {
                own.filter(|at| self.conns[*at].streams == 0).max_by_key(|at| self.conns[*at].idle_since_ns)
            }
            Some(streams) => own.into_iter().find(|at| {
                let conn = &self.conns[*at];
                let is_young = conn.old_ns > now_ns && limits.requests.is_none_or(|most| conn.carried < most);
                conn.streams < streams && is_young
            }),
        }
    }

    fn begin(&mut self, at: usize) -> u32 {
        let conn = &mut self.conns[at];
        (conn.streams, conn.carried, conn.idle_since_ns) = (conn.streams + 1, conn.carried + 1, None);
        conn.number
    }

    fn come(&mut self, pair: Pair, who: u32, now_ns: u64) -> (Come, Option<u32>) {
        self.expire(now_ns);
        self.tally.came += 1;
        if let Some(at) = self.usable(pair, now_ns) {
            self.tally.found += 1;
            return (Come::Takes(ConnId(0)), Some(self.begin(at)));
        }
        if self.limits(pair).streams.is_some() {
            if self.opening.iter().any(|(of, _)| *of == pair) {
                self.waiting.push((pair, who));
                return (Come::Waits, None);
            }
            self.opening.push((pair, who));
        }
        (Come::Opens, None)
    }

    fn opened(&mut self, pair: Pair, number: u32, now_ns: u64) {
        self.expire(now_ns);
        self.opening.retain(|(of, _)| *of != pair);
        let old_ns = self.limits(pair).age_ns.map_or(u64::MAX, |age| now_ns + age);
        self.conns.push(Plain {
            number,
            pair,
            opened_ns: now_ns,
            old_ns,
            streams: 0,
            carried: 0,
            idle_since_ns: None,
            is_closed: false,
        });
        self.begin(self.conns.len() - 1);
        self.tally.opened += 1;
        let open = self.conns.iter().filter(|conn| !conn.is_closed).count() as u64;
        self.tally.peak = self.tally.peak.max(open);
    }

    fn next_waiting(&mut self, pair: Pair) -> Option<u32> {
        let at = self.waiting.iter().position(|(of, _)| *of == pair)?;
        Some(self.waiting.remove(at).1)
    }

    fn give_back(&mut self, number: u32, now_ns: u64, is_broken_off: bool) {
        self.expire(now_ns);
        let at = self.conns.iter().position(|conn| conn.number == number).expect("it was opened");
        self.conns[at].streams -= 1;
        let Plain { pair, streams, carried, old_ns, is_closed, .. } = self.conns[at];
        let limits = self.limits(pair);
        if is_closed {
            return;
        }
        if is_broken_off && limits.streams.is_none() {
            return self.end(at, now_ns, End::Exchange);
        }
        if streams > 0 {
            return;
        }
        if self.gone.contains(&pair) {
            self.end(at, now_ns, End::Spare);
        } else if limits.requests.is_some_and(|most| carried >= most) || old_ns <= now_ns {
            self.end(at, now_ns, End::Age);
        } else {
            self.conns[at].idle_since_ns = Some(now_ns);
        }
    }

    fn tally(&self, at_ns: u64) -> Tally {
        let open = self.conns.iter().filter(|conn| !conn.is_closed);
        let open_ns: i128 = open.map(|conn| i128::from(at_ns) - i128::from(conn.opened_ns)).sum();
        Tally { open_ns: self.tally.open_ns + open_ns, ..self.tally.clone() }
    }
}

/// Both, and the requests on them: their connections by the numbers of each.
struct Both {
    pools: Pools,
    twin: Twin,
    on: Vec<(ConnId, u32)>,
    numbers: u32,
    now_ns: u64,
}

impl Both {
    fn come(&mut self, pair: Pair, who: u32) {
        let row = self.pools.row(pair);
        let own = self.pools.come(row, who, self.now_ns);
        let (other, number) = self.twin.come(pair, who, self.now_ns);
        match (own, other) {
            (Come::Takes(conn), Come::Takes(_)) => self.on.push((conn, number.expect("it has one"))),
            (Come::Opens, Come::Opens) if self.twin.limits(pair).streams.is_none() => self.opens(pair),
            (Come::Opens, Come::Opens) | (Come::Waits, Come::Waits) => {}
            (own, other) => panic!("{own:?}, but the twin says {other:?}"),
        }
    }

    fn opens(&mut self, pair: Pair) {
        let row = self.pools.row(pair);
        let conn = self.pools.opened(row, self.now_ns, 0);
        self.twin.opened(pair, self.numbers, self.now_ns);
        self.on.push((conn, self.numbers));
        self.numbers += 1;
        while let Some((who, conn)) = self.pools.next_to_go(row, self.now_ns) {
            let at = self.twin.usable(pair, self.now_ns).expect("there is room");
            assert_eq!(self.twin.next_waiting(pair), Some(who));
            let number = self.twin.begin(at);
            self.on.push((conn, number));
        }
        let next = self.pools.next_opener(row);
        assert_eq!(next, self.twin.next_waiting(pair));
        self.twin.opening.extend(next.map(|who| (pair, who)));
    }

    /// Something happens to a pair whose connection is being opened.
    fn opening(&mut self, at: usize, luck: u64) {
        let (pair, who) = self.twin.opening[at];
        let row = self.pools.row(pair);
        match luck {
            0 => {
                self.twin.opening.remove(at);
                while let Some(who) = self.pools.next_to_fail(row) {
                    assert_eq!(self.twin.next_waiting(pair), Some(who));
                }
                assert_eq!(self.twin.next_waiting(pair), None);
            }
            1 => {
                let next = self.pools.abandon(row, who);
                assert_eq!(next, self.twin.next_waiting(pair));
                self.twin.opening.remove(at);
                self.twin.opening.extend(next.map(|who| (pair, who)));
            }
            _ => self.opens(pair),
        }
    }
}

fn limits(draw: &mut impl FnMut(u64) -> u64) -> Limits {
    let mut maybe = |most: u64| (draw(3) == 0).then(|| 1 + draw(most));
    let (age_ns, requests) = (maybe(200), maybe(5));
    Limits {
        streams: (draw(2) == 0).then(|| 1 + draw(4) as u32),
        idle_ns: (draw(5) > 0).then(|| draw(40)),
        age_ns,
        requests,
    }
}

fn one_run(seed: u64) {
    let (key, mut number) = (Key::new(seed), 0);
    let mut draw = |below: u64| {
        number += 1;
        key.with(number).bits() % below
    };
    let all: Vec<Limits> = (0..3).map(|_| limits(&mut draw)).collect();
    let servers = all.iter().map(|&limits| Server { limits, tls: true, group: 1 }).collect();
    let instances = [2, 1].map(|loops| Instance { loops, group: None }).to_vec();
    let twin = Twin { limits: all, ..Twin::default() };
    let mut both =
        Both { pools: Pools::new(servers, instances), twin, on: Vec::new(), numbers: 0, now_ns: 0 };
    for who in 0..300 {
        both.now_ns += draw(20);
        let instance = draw(2) as u32;
        let pair = Pair { instance, on: draw(2 - u64::from(instance)) as u32, server: draw(3) as u32 };
        match draw(12) {
            0..5 => both.come(pair, who),
            5..8 if !both.on.is_empty() => {
                let at = draw(both.on.len() as u64) as usize;
                let (conn, number) = both.on.swap_remove(at);
                let is_broken_off = draw(4) == 0;
                both.pools.give_back(conn, both.now_ns, is_broken_off);
                both.twin.give_back(number, both.now_ns, is_broken_off);
            }
            8..10 if !both.twin.opening.is_empty() => {
                let at = draw(both.twin.opening.len() as u64) as usize;
                both.opening(at, draw(5));
            }
            10 => both.leave_or_return(pair),
            11 if draw(4) == 0 => both.process_ends(pair.server),
            _ => {}
        }
        both.compare(seed);
    }
}

impl Both {
    /// A server leaves an instance, or comes back to it.
    fn leave_or_return(&mut self, pair: Pair) {
        let Pair { instance, server, .. } = pair;
        let is_gone = self.twin.gone.contains(&pair);
        self.twin.expire(self.now_ns);
        if is_gone {
            self.pools.server_returns(instance, server);
            self.twin.gone.retain(|of| (of.instance, of.server) != (instance, server));
            return;
        }
        self.pools.server_leaves(instance, server, self.now_ns);
        self.twin.gone.extend((0..2 - instance).map(|on| Pair { on, ..pair }));
        for at in 0..self.twin.conns.len() {
            let conn = &self.twin.conns[at];
            let is_meant = (conn.pair.instance, conn.pair.server) == (instance, server);
            if is_meant && conn.idle_since_ns.is_some() {
                self.twin.end(at, self.now_ns, End::Spare);
            }
        }
    }

    /// The process of a server ends.
    fn process_ends(&mut self, server: u32) {
        self.twin.expire(self.now_ns);
        self.pools.process_ends(server, self.now_ns);
        for at in 0..self.twin.conns.len() {
            let conn = &self.twin.conns[at];
            let is_h2 = self.twin.limits(conn.pair).streams.is_some();
            let ends = is_h2 || conn.idle_since_ns.is_some();
            if conn.pair.server == server && !conn.is_closed && ends {
                self.twin.end(at, self.now_ns, End::Exchange);
            }
        }
    }

    fn compare(&mut self, seed: u64) {
        self.twin.expire(self.now_ns);
        let all = self.pools.counts(self.now_ns);
        let own = all.groups[0];
        assert_eq!(own, Count { ..all.groups[1] }, "all are in the one group");
        let Count { open_ns, peak, opened, closed, came, found, .. } = own;
        assert_eq!(
            Tally { open_ns, peak, opened, closed, came, found },
            self.twin.tally(self.now_ns),
            "seed {seed}"
        );
        assert_eq!(all.servers_ns.iter().sum::<i128>(), open_ns);
        assert_eq!(all.instances_ns.iter().sum::<i128>(), open_ns);
        assert!(own.requests_ns >= own.busy_ns);
    }
}

#[test]
fn pools_are_those_of_a_naive_twin() {
    (0..400).for_each(one_run);
}

/// 16 loops of 100 instances to 800 servers: the memory of a row without connections.
#[test]
fn a_pair_without_a_connection_takes_little() {
    let server = Server { limits: Limits::default(), tls: false, group: 1 };
    let instances = vec![Instance { loops: 16, group: None }; 100];
    let mut pools = Pools::new(vec![server; 800], instances);
    for instance in 0..100 {
        for on in 0..16 {
            for server in 0..800 {
                pools.row(Pair { instance, on, server });
            }
        }
    }
    let each = pools.room() as f64 / 1_280_000.0;
    assert!(each <= 64.0, "a pair takes {each:.1} bytes");
}

#[test]
fn the_connection_that_was_given_back_last_is_taken_first() {
    let limits = Limits { idle_ns: Some(15), ..Limits::default() };
    let mut pools =
        Pools::new(vec![Server { limits, tls: false, group: 1 }], vec![Instance { loops: 1, group: None }]);
    let row = pools.row(Pair { instance: 0, on: 0, server: 0 });
    let mut opened = Vec::new();
    // Begins and ends, in the order of time.
    for (at_ns, begins) in
        [(0, true), (1, true), (10, false), (12, false), (15, true), (25, false), (26, true), (27, true)]
    {
        if !begins {
            pools.give_back(ConnId(u32::from(at_ns != 10)), at_ns, false);
            continue;
        }
        if pools.come(row, 0, at_ns) == Come::Opens {
            pools.opened(row, at_ns, 0);
            opened.push(at_ns);
        }
    }
    // The connection returned last comes first, so the other one ages.
    assert_eq!(opened, [0, 1, 27]);
}
