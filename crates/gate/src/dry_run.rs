//! `weir gate --dry-run`: when an asker is let in, without asking anything.

use crate::log::Line;
use crate::options::{id, ns};
use serde::Serialize;
use std::net::IpAddr;
use std::time::Duration;
use weir_policy::gate::{Flap, GateArgs, Place, asker_text, enabled_percent};

/// An asker, and how long after the clock's beginning it asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The asker: an address, or what a field of the check says.
    pub peer: String,
    /// When; `None`: it is not asked what it is answered.
    pub at: Option<Duration>,
}

/// What it is answered, and from when it is let in.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Prediction {
    /// The asker, in the form in which it is hashed.
    pub peer: String,
    /// The hash that its place comes from.
    pub hash: i64,
    /// The share of the ramp after which it is let in.
    pub share: f64,
    /// From when it is, after the clock's beginning.
    pub from_s: Seconds,
    /// When it asks.
    pub time_s: Option<f64>,
    /// How much of the ramp is over then.
    pub enabled_percent: Option<f32>,
    /// What it is answered.
    pub healthy: Option<bool>,
}

/// A time: whole with [`Flap::Article`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Seconds {
    /// By whole seconds.
    Whole(u64),
    /// By any part of one.
    Part(f64),
}

/// Answers each question at the process with this id; `None`: any on this host.
pub fn predict(
    questions: &[Question],
    ramp: Option<Duration>,
    flap: Flap,
    named: Option<&str>,
) -> Vec<Prediction> {
    let id = named.map_or_else(|| id(""), str::to_owned);
    let args = GateArgs { ramp_ns: ramp.map(ns), flap, work: None };
    let predicted = |question: &Question| {
        let peer = question.peer.parse::<IpAddr>().map_or_else(|_| question.peer.clone(), asker_text);
        let place = Place::new(flap, &id, &peer);
        let from_ns = place.from_ns(&args);
        let at_ns = question.at.map(ns);
        Prediction {
            peer,
            hash: place.hash,
            share: place.share,
            from_s: match flap {
                Flap::Article => Seconds::Whole(from_ns / 1_000_000_000),
                Flap::Even => Seconds::Part(from_ns as f64 / 1e9),
            },
            time_s: at_ns.map(|at_ns| at_ns as f64 / 1e9),
            enabled_percent: at_ns.map(|at_ns| enabled_percent(&args, at_ns)),
            healthy: at_ns.map(|at_ns| place.share_is_in(&args, at_ns)),
        }
    };
    questions.iter().map(predicted).collect()
}

/// A line for each.
pub fn predictions_text(predictions: &[Prediction]) -> String {
    let line = |p: &Prediction| {
        let place = Place { hash: p.hash, share: p.share };
        match (p.enabled_percent, p.healthy) {
            (Some(enabled_percent), Some(is_healthy)) => {
                Line { peer: &p.peer, place: &place, enabled_percent, is_healthy }.text() + "\n"
            }
            _ => {
                let from = match p.from_s {
                    Seconds::Whole(s) => s.to_string(),
                    Seconds::Part(s) => format!("{s:.1}"),
                };
                let (peer, share) = (p.peer.escape_debug(), p.share * 100.0);
                format!("gate: peer {peer} hash {} share {share:.1} % from {from} s\n", p.hash)
            }
        }
    };
    predictions.iter().map(line).collect()
}

/// A list of them.
pub fn predictions_json(predictions: &[Prediction]) -> String {
    // Numbers and texts alone: it cannot fail.
    serde_json::to_string(predictions).unwrap_or_default() + "\n"
}
