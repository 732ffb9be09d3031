//! The state of the gate: readiness of the application, addresses of the balancers, rate of requests.

use crate::askers::Askers;
use crate::fetch::NoReply;
use crate::log::{self, Line, LogFormat};
use crate::options::{AskerKey, Options};
use std::time::Instant;
use weir_policy::gate::{Answer, Gate, OtherGate};

/// All of it, on one thread.
pub(crate) struct State {
    begun: Instant,
    pub id: String,
    pub url: String,
    pub key: AskerKey,
    log: LogFormat,
    expect: Vec<(u16, u16)>,
    pub gate: Gate,
    pub askers: Askers,
    /// Why the application is not ready; `None`: it is.
    pub unready: Option<String>,
    /// Whether the gate ends.
    pub is_ending: bool,
    pub answers: AnswerCounts,
    work: WorkState,
}

/// What is known of requests.
#[derive(Default)]
struct WorkState {
    is_wanted: bool,
    is_relative: bool,
    /// The counter when it was last read; `None`: it never was.
    counter: Option<u64>,
    /// The number of times that it was read.
    readings: u64,
    /// Why it cannot be read, said once.
    why: Option<String>,
    others: Vec<OtherGate>,
}

/// Answers, by result.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AnswerCounts {
    pub healthy: u64,
    pub ramp: u64,
    pub unready: u64,
    pub idle: u64,
}

impl State {
    pub fn new(options: &Options) -> State {
        let id = options.id();
        State {
            begun: Instant::now(),
            url: options.url.text.clone(),
            key: options.key.clone(),
            log: options.log,
            expect: options.expect.clone(),
            gate: Gate::new(options.gate()),
            askers: Askers::new(options.flap, &id),
            id,
            unready: Some("--for was not asked yet".to_owned()),
            is_ending: false,
            answers: AnswerCounts::default(),
            work: WorkState {
                is_wanted: options.work.is_some(),
                is_relative: options.work.as_ref().is_some_and(|work| work.peers.is_some()),
                ..WorkState::default()
            },
        }
    }

    pub fn now_ns(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// The application has answered, or has not.
    pub fn probed(&mut self, result: Result<u16, NoReply>) {
        let fits = |status: &u16| self.expect.iter().any(|(low, high)| (*low..=*high).contains(status));
        let unready = match result {
            Ok(status) if fits(&status) => None,
            Ok(status) => Some(format!("--for answered {status}")),
            Err(NoReply::Late) => Some("--for did not answer in time".to_owned()),
            Err(NoReply::Other(why)) => Some(format!("--for {why}")),
            Err(NoReply::Gone(why)) => {
                self.restart();
                Some(format!("--for {why}"))
            }
        };
        if unready.is_none() {
            self.gate.passed(self.now_ns());
        }
        if unready.is_none() != self.unready.is_none() {
            let what = unready.as_ref().map_or_else(|| "ready".to_owned(), |why| format!("not ready: {why}"));
            log::tell(self.log, &what);
        }
        self.unready = unready;
    }

    /// The process has begun anew.
    fn restart(&mut self) {
        self.gate.restart();
        self.work.counter = None;
    }

    /// The counter of requests was read, or cannot be.
    pub fn counted(&mut self, counter: Result<u64, String>) {
        match counter {
            Ok(now) => {
                match self.work.counter {
                    Some(before) if now < before => {
                        log::tell(self.log, "the counter of requests fell: the process has begun anew");
                        self.restart();
                        self.gate.enter_many(now);
                        if self.unready.is_none() {
                            self.gate.passed(self.now_ns());
                        }
                    }
                    before => self.gate.enter_many(now - before.unwrap_or(now)),
                }
                self.work.counter = Some(now);
                self.work.readings += 1;
                if self.work.why.take().is_some() {
                    log::tell(self.log, "--requests-from can be read again");
                }
            }
            Err(why) => {
                if self.work.why.is_none() {
                    log::tell(self.log, &format!("no judgement by work: --requests-from {why}"));
                }
                self.work.why = Some(why);
            }
        }
    }

    /// The other gates, those that run and are not held.
    pub fn heard(&mut self, others: Vec<OtherGate>) {
        self.work.others = others;
    }

    /// Requests that have come in, where that is known.
    pub fn requests(&self) -> Option<u64> {
        self.work.counter.filter(|_| self.work.why.is_none()).map(|_| self.gate.entered())
    }

    /// Why there is no judgement by work, although it is wanted.
    pub fn no_judgement(&self) -> Option<&str> {
        self.work.why.as_deref()
    }

    /// Answers a check, with a line that says why.
    pub fn check(&mut self, peer: &str) -> (Answer, String) {
        let now_ns = self.now_ns();
        let (asker, gone) = self.askers.ask(now_ns, peer);
        gone.into_iter().for_each(|number| self.gate.forget(number));
        let is_ready = self.unready.is_none() && !self.is_ending;
        // What came in since its last check is known once the counter was read again.
        let is_news = self.askers.meet_reading(peer, self.work.readings);
        let answer = match self.judges() && (is_news || self.held_ns().is_some()) {
            true => self.gate.answer(now_ns, asker, is_ready, &self.work.others),
            false => self.gate.answer_by_ramp(now_ns, asker, is_ready),
        };
        let line = self.words(now_ns, answer, asker.place.share);
        let enabled_percent = self.gate.enabled_percent(now_ns);
        if self.askers.answer(peer, answer) {
            let line_of =
                Line { peer, place: &asker.place, enabled_percent, is_healthy: answer.is_healthy() };
            line_of.tell(self.log, (!answer.is_healthy()).then_some(&line));
        }
        match answer {
            Answer::Healthy => self.answers.healthy += 1,
            Answer::Ramp => self.answers.ramp += 1,
            Answer::Unready => self.answers.unready += 1,
            Answer::Idle { .. } | Answer::Held => self.answers.idle += 1,
        }
        (answer, line)
    }

    /// Whether requests are judged now: where their counter cannot be read they are not.
    fn judges(&self) -> bool {
        let is_readable = self.work.counter.is_some() && self.work.why.is_none();
        self.work.is_wanted && is_readable && (!self.work.is_relative || !self.work.others.is_empty())
    }

    /// For how long all are still turned away for want of requests, ns.
    pub fn held_ns(&self) -> Option<u64> {
        self.gate.held_ns(self.now_ns()).filter(|_| self.judges())
    }

    fn words(&self, now_ns: u64, answer: Answer, share: f64) -> String {
        let wanted = self.gate.args().work.as_ref().map_or(0, |work| work.min_requests);
        match answer {
            Answer::Healthy => "healthy".to_owned(),
            Answer::Unready if self.is_ending => "the gate ends".to_owned(),
            Answer::Unready => self.unready.clone().unwrap_or_default(),
            Answer::Ramp => {
                let enabled = self.gate.enabled_percent(now_ns);
                format!("ramp {enabled:.1} %, you come at {:.1} %", share * 100.0)
            }
            Answer::Idle { had } => format!("{had} requests since you asked last, {wanted} wanted"),
            Answer::Held => {
                let left_s = self.held_ns().unwrap_or(0) as f64 / 1e9;
                format!("too few requests came in; all are turned away for {left_s:.1} s more")
            }
        }
    }
}
