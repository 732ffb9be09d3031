//! Handing an accepted connection to another loop: the system spreads connections over sockets by a hash, which is lumpy where
//! they are few, and one loop may get all that stay long.
//!
//! A loop hands over what it accepts while it has more than a quarter and a few more connections of that listener than the
//! loop that has fewest. So with many connections nothing is moved, and with few the loops differ by a handful at most.
//!
//! Once any loop has closed its doors nothing is handed over any more. A loop that drains waits for what was on its way to it
//! before: who hands over counts first and looks for a closed door then, who closes does it the other way round.

use crate::control::event_loop::Loop;
use crate::control::mailbox::ToLoop;
use crate::control::process::Process;
use crate::h1::server;
use crate::transport::listener::Place;
use crate::transport::socket::Raw;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};

/// A connection on its way to another loop.
pub(crate) struct Guest {
    /// The number of its listener.
    listener: usize,
    socket: Raw,
    peer: Option<SocketAddr>,
    place: Place,
    invited: Invited,
}

/// Connections on their way to each loop.
pub(crate) struct Guests {
    coming: Box<[AtomicU32]>,
    closed: AtomicBool,
}

/// A connection that a loop waits for, until it is known there.
pub(crate) struct Invited {
    process: Arc<Process>,
    to: usize,
}

impl Guests {
    /// Of so many loops.
    pub fn new(loops: usize) -> Guests {
        Guests { coming: (0..loops).map(|_| AtomicU32::new(0)).collect(), closed: AtomicBool::new(false) }
    }

    /// A loop closes its doors, or has ended: from now on nothing is handed over.
    pub fn close(&self) {
        self.closed.store(true, SeqCst);
    }

    /// Whether any are on their way to a loop.
    pub fn are_coming(&self, to: u32) -> bool {
        self.coming.get(to as usize).is_some_and(|n| n.load(SeqCst) > 0)
    }
}

impl Invited {
    /// To be handed to that loop; `None`: nothing is any more.
    pub fn to(process: &Arc<Process>, to: usize) -> Option<Invited> {
        process.guests.coming.get(to)?.fetch_add(1, SeqCst);
        let invited = Invited { process: process.clone(), to };
        (!process.guests.closed.load(SeqCst)).then_some(invited)
    }
}

impl Drop for Invited {
    fn drop(&mut self) {
        self.process.guests.coming[self.to].fetch_sub(1, SeqCst);
    }
}

/// Hands a connection to another loop, for which it is counted already.
pub(crate) fn send(
    lp: &Loop,
    invited: Invited,
    listener: usize,
    socket: Raw,
    peer: Option<SocketAddr>,
    place: Place,
) {
    let to = invited.to as u32;
    lp.process.tell(to, ToLoop::Client(Box::new(Guest { listener, socket, peer, place, invited })));
}

impl Guest {
    /// Serves it here.
    pub fn welcome(self, lp: &Rc<Loop>) {
        let socket = self.socket.watch(&lp.runtime);
        // What cannot be watched closes, as one does that cannot be accepted.
        if let (Ok(socket), Some(listener)) = (socket, lp.listener(self.listener)) {
            let Place { own, common } = self.place;
            let serving = server::serve(lp.clone(), listener, socket, self.peer, own);
            let mut invited = Some(self.invited);
            lp.runtime.spawn(async move {
                let _common = common;
                let mut serving = std::pin::pin!(serving);
                poll_fn(|cx| {
                    let end = serving.as_mut().poll(cx);
                    // The loop knows it now, and counts it itself.
                    drop(invited.take());
                    end
                })
                .await;
            });
        }
    }
}
