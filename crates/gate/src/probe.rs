//! What is asked again and again: the application, and the counter of its requests.

use crate::counter;
use crate::fetch::{NoReply, Source};
use crate::state::State;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;
use tokio::time::MissedTickBehavior;

/// Asks the application, for ever.
pub(crate) async fn application(state: Rc<RefCell<State>>, source: Source, interval: Duration) {
    let mut ticks = ticks(interval);
    loop {
        ticks.tick().await;
        let result = source.status().await;
        state.borrow_mut().probed(result);
    }
}

/// Reads the counter of requests, for ever. `family`: which; `None`: the first that is known.
pub(crate) async fn requests(
    state: Rc<RefCell<State>>,
    source: Source,
    family: Option<String>,
    interval: Duration,
) {
    let mut ticks = ticks(interval);
    loop {
        ticks.tick().await;
        let page = source.page().await;
        let counter = page.map_err(said).and_then(|page| {
            let sum = counter::sum(&String::from_utf8_lossy(&page), family.as_deref());
            sum.ok_or_else(|| match &family {
                Some(family) => format!("has no samples of {family}"),
                None => "has no counter of requests that is known; name it: URL#FAMILY".to_owned(),
            })
        });
        state.borrow_mut().counted(counter);
    }
}

fn said(missed: NoReply) -> String {
    match missed {
        NoReply::Gone(why) | NoReply::Other(why) => why,
        NoReply::Late => "did not answer in time".to_owned(),
    }
}

/// Ticks of which the first is at once. One that comes late moves those after it.
pub(crate) fn ticks(interval: Duration) -> tokio::time::Interval {
    let mut ticks = tokio::time::interval(interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}
