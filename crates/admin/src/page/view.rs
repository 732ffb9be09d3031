//! What a page shows: a view at one moment, and what is made of it once for all clients.

use super::{Live, Parts};
use std::sync::{Arc, OnceLock};
use std::time::Instant;
use weir_report::graph::Drawing;
use weir_serve::{Config, View};

/// A view at one moment.
pub(crate) struct TimedView {
    pub at: Instant,
    /// The same, ms since 1970.
    pub unix_ms: u64,
    pub view: View,
    pub file: String,
    pub config: Config,
    pub stalled: Vec<String>,
    pub drawing: Arc<Drawing>,
    /// By node the server that its only way leads to.
    pub ends: Arc<[u32]>,
    pub rendered: Rendered,
}

/// What is made of a view when it is first wanted.
#[derive(Default)]
pub(crate) struct Rendered {
    /// The page, with some targets or with all.
    parts: [OnceLock<Parts>; 2],
    live: OnceLock<Live>,
}

impl TimedView {
    /// The live state by node.
    pub fn live(&self) -> &Live {
        self.rendered.live.get_or_init(|| Live::new(&self.view, &self.ends))
    }

    /// The page of it.
    pub fn parts(&self, all: bool) -> &Parts {
        self.rendered.parts[usize::from(all)].get_or_init(|| Parts::new(self, all))
    }

    #[cfg(test)]
    pub fn made(view: View, file: String, config: Config, drawing: Drawing) -> TimedView {
        let (at, drawing, stalled, ends) = (Instant::now(), Arc::new(drawing), Vec::new(), [].into());
        let (rendered, unix_ms) = (Rendered::default(), 1_795_662_724_000);
        TimedView { at, unix_ms, view, file, config, stalled, drawing, ends, rendered }
    }
}
