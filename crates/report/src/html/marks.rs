//! What the file let fail, and when: shaded parts of the charts over time, and their legend.

use super::places::Places;
use crate::chart::{Axis, Shade};
use crate::escaped;
use crate::number::plain;
use std::io::{self, Write};
use weir_sim::Mark;

/// More marks than this have no letters and no legend.
const SIGNED: usize = 8;

/// A mark in words.
fn words(mark: &Mark, places: &Places<'_>) -> String {
    let seconds = |ns: u64| plain(Some(ns as f64 / 1e9));
    let members = match (mark.members, mark.count) {
        (1, 1) => String::new(),
        (members, count) if members == count => format!("all {count} "),
        (members, count) => format!("{members} of {count} "),
    };
    if let "join" | "leave" | "rolling" | "unlist" = mark.what {
        return change(mark, &seconds);
    }
    let state = match mark.what {
        "slow" => "slow".to_owned(),
        "pause" => "paused".to_owned(),
        what => format!("down ({what})"),
    };
    let place = places.shared_name(&mark.place);
    format!("{place}: {members}{state} from {} s to {} s", seconds(mark.from_ns), seconds(mark.to_ns))
}

/// A change of a fleet in words.
fn change(mark: &Mark, seconds: &dyn Fn(u64) -> String) -> String {
    let (fleet, n, from, to) = (&mark.place, mark.members, seconds(mark.from_ns), seconds(mark.to_ns));
    match mark.what {
        "join" => format!("{fleet}: {n} join at {from} s"),
        "leave" => format!("{fleet}: {n} leave at {from} s"),
        "rolling" => format!("{fleet}: {n} are replaced from {from} s to {to} s"),
        _ => format!("{fleet}: some are not listed from {from} s to {to} s"),
    }
}

/// The marks of a scenario, or those of several, each once.
pub(super) fn shades<'m>(marks: impl Iterator<Item = &'m Mark>, places: &Places<'_>, x: &Axis) -> Vec<Shade> {
    let mut shades: Vec<Shade> = Vec::new();
    for mark in marks {
        let title = words(mark, places);
        if shades.iter().all(|known| known.title != title) {
            let at = |ns: u64| x.position(ns as f64 / 1e9);
            let strength = mark.members as f64 / mark.count.max(1) as f64;
            let (from, to) = (at(mark.from_ns), at(mark.to_ns));
            shades.push(Shade { from, to, strength, sign: String::new(), title });
        }
    }
    if shades.len() <= SIGNED {
        shades.iter_mut().zip('A'..='Z').for_each(|(shade, sign)| shade.sign = sign.to_string());
    }
    shades
}

/// Says what is shaded.
pub(super) fn legend(shades: &[Shade], out: &mut dyn Write) -> io::Result<()> {
    if shades.is_empty() {
        return Ok(());
    }
    writeln!(out, "<ul class=\"marks\">")?;
    if shades.len() > SIGNED {
        let (first, count) = (escaped(&shades[0].title), shades.len());
        writeln!(
            out,
            "<li><span class=\"swatch\"></span>{count} outages, of which the first is {first}</li>"
        )?;
    } else {
        for shade in shades {
            let (sign, title) = (escaped(&shade.sign), escaped(&shade.title));
            writeln!(out, "<li><span class=\"swatch\"></span><b>{sign}</b> {title}</li>")?;
        }
    }
    writeln!(out, "</ul>")
}
