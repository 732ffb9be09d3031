//! Flow control (RFC 9113 §5.2, §6.9): what this side may send, and what it lets the peer send.

use crate::error::ErrorCode;

/// The largest window (RFC 9113 §6.9.1).
pub(crate) const MOST: u32 = i32::MAX as u32;

/// The window of a new stream or connection before anything was said (RFC 9113 §6.9.2).
pub(crate) const INITIAL: u32 = 65_535;

/// Less is given back only if it is a quarter of the window.
const CRUMB: i32 = 4096;

/// What this side may send. It is below zero when the peer has made its initial window smaller meanwhile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SendWindow(i32);

impl SendWindow {
    pub(crate) fn new(size: i32) -> SendWindow {
        SendWindow(size)
    }

    pub(crate) fn available(self) -> u32 {
        u32::try_from(self.0).unwrap_or(0)
    }

    /// The peer gives window; `Err`: more than there may be.
    pub(crate) fn grow(&mut self, increment: u32) -> Result<(), ErrorCode> {
        self.change(i64::from(increment))
    }

    /// The peer has changed its initial window by this much (RFC 9113 §6.9.2).
    pub(crate) fn change(&mut self, by: i64) -> Result<(), ErrorCode> {
        self.0 = i32::try_from(i64::from(self.0) + by).map_err(|_| ErrorCode::FLOW_CONTROL_ERROR)?;
        Ok(())
    }

    /// Bytes were sent, no more than are available.
    pub(crate) fn take(&mut self, bytes: u32) {
        self.0 -= i32::try_from(bytes).unwrap_or(i32::MAX).min(self.0.max(0));
    }
}

/// What the peer may send. What is neither in the window nor held was passed on, and is to be given back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReceiveWindow {
    /// Below zero if the initial window became smaller.
    window: i32,
    /// Bytes that have come and were not passed on.
    held: u32,
}

impl ReceiveWindow {
    pub(crate) fn new(size: i32) -> ReceiveWindow {
        ReceiveWindow { window: size, held: 0 }
    }

    /// A DATA frame of this length comes; `false`: the window has no room for it.
    pub(crate) fn receive(&mut self, length: u32) -> bool {
        let has_room = i64::from(self.window) >= i64::from(length);
        if has_room {
            self.window -= length as i32;
            self.held += length;
        }
        has_room
    }

    /// Bytes were passed on; returns how many of them were held.
    pub(crate) fn release(&mut self, bytes: u32) -> u32 {
        let released = bytes.min(self.held);
        self.held -= released;
        released
    }

    /// All bytes that are held count as passed on; returns how many there were.
    pub(crate) fn release_all(&mut self) -> u32 {
        self.release(self.held)
    }

    /// The initial window has changed by this much, with the peer's acknowledgement.
    pub(crate) fn change(&mut self, by: i64) {
        let changed = i64::from(self.window) + by;
        self.window = i32::try_from(changed.clamp(i64::from(i32::MIN), i64::from(i32::MAX))).unwrap_or(0);
    }

    /// Bytes that are held.
    pub(crate) fn held(&self) -> u32 {
        self.held
    }

    /// Bytes in the window, and bytes held.
    pub(crate) fn size(&self) -> i64 {
        i64::from(self.window) + i64::from(self.held)
    }

    /// Whether a window of this size is worth a frame: a quarter of it is missing, or as much as is left and not few bytes
    /// (RFC 9293 §3.8.6.2: the silly window).
    pub(crate) fn is_due(&self, size: u32) -> bool {
        let missing = i64::from(size) - self.size();
        missing > 0 && (missing >= i64::from(size / 4) || missing >= i64::from(self.window.max(CRUMB)))
    }

    /// Makes its size this; returns the increment, which is 0 if it is larger already.
    pub(crate) fn refill(&mut self, size: u32) -> u32 {
        let most = i64::from(MOST) - i64::from(self.window).max(0);
        let increment = (i64::from(size.min(MOST)) - self.size()).clamp(0, most);
        self.window = self.window.saturating_add(increment as i32);
        increment as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_may_be_negative_and_not_too_large() {
        let mut window = SendWindow::new(100);
        window.take(60);
        assert!(window.change(-100).is_ok() && window.available() == 0);
        assert!(window.grow(60).is_ok() && window.available() == 0);
        assert!(window.grow(MOST).is_ok() && window.available() == MOST);
        assert_eq!(window.grow(1), Err(ErrorCode::FLOW_CONTROL_ERROR));
    }

    #[test]
    fn what_is_passed_on_is_given_back() {
        let mut window = ReceiveWindow::new(100);
        assert!(window.receive(90) && !window.receive(11));
        assert!(!window.is_due(100));
        assert_eq!((window.release(20), window.size()), (20, 80));
        assert!(!window.is_due(100) && window.is_due(107));
        assert_eq!((window.refill(100), window.size()), (20, 100));
        assert_eq!(window.release(1000), 70);
        // It shrinks by giving back less.
        assert_eq!((window.refill(50), window.size()), (20, 50));
        window.change(-60);
        assert!(!window.receive(1));
        assert_eq!(window.refill(40), 50);
    }
}
