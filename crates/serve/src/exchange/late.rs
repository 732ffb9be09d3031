//! Whether a balancer's requests are being dropped because a `timeout` around it has passed: for the health of their
//! targets that is an error, and any other cancellation is nothing (`docs/spec/language.md#ejection`).

use std::cell::Cell;
use std::rc::Rc;

/// The flag of one balancer on one thread; set only while a request is dropped, which happens at once.
#[derive(Clone, Debug, Default)]
pub(crate) struct LateFlag(Rc<Cell<bool>>);

/// Clears the flag, also where a drop panics.
struct Clearing<'a>(&'a Cell<bool>);

impl Drop for Clearing<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

impl LateFlag {
    /// Drops something that a `timeout` around the balancer cuts off.
    pub fn during(&self, drops: impl FnOnce()) {
        self.0.set(true);
        let _clearing = Clearing(&self.0);
        drops();
    }

    /// Whether what is dropped now was cut off so.
    pub fn is_set(&self) -> bool {
        self.0.get()
    }
}
