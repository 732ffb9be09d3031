//! `sticky="name"`: a cookie by which a client returns to its target. It holds a keyed hash of the target's name; the
//! secret is the process's, so that all loops read it alike.

use crate::exchange::Exchange;
use std::cell::RefCell;
use weir_policy::sticky::Cookies;

/// The cookie of a balancer.
pub(crate) struct Sticky {
    /// The cookie's name.
    name: String,
    cookies: RefCell<Cookies>,
}

impl Sticky {
    /// For targets of these names, which differ.
    pub fn new(name: &str, secret: [u64; 2], targets: &[String]) -> Sticky {
        let mut cookies = Cookies::new(secret);
        for (target, name) in (0u32..).zip(targets) {
            cookies.set(target, Some(name));
        }
        Sticky { name: name.to_owned(), cookies: RefCell::new(cookies) }
    }

    /// The target that a request names.
    pub fn target(&self, ex: &Exchange) -> Option<u32> {
        self.cookies.borrow().target(ex.request.cookie(&self.name)?)
    }

    /// The value of Set-Cookie for a client of this target.
    pub fn set_cookie(&self, target: u32, secure: bool) -> Option<String> {
        let cookies = self.cookies.borrow();
        let (name, value) = (&self.name, cookies.value(target)?);
        let secure = if secure { "; Secure" } else { "" };
        Some(format!("{name}={value}; Path=/; HttpOnly; SameSite=Lax{secure}"))
    }

    /// A target is gone: its clients are free.
    pub fn forget(&self, target: u32) {
        self.cookies.borrow_mut().set(target, None);
    }
}
