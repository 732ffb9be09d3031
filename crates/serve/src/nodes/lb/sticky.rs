//! `sticky="cookie name"` of a balancer: a client returns to the target that answered it.
//!
//! The cookie's value is a keyed hash of the target's name (`policy::sticky`), under a key that every instance has.
//! If the target is gone, not eligible, full or excluded, the policy picks, and the client gets the new one. Draws:
//! nothing.

use super::{Lb, PickedNode};
use crate::exchange::Exchange;
use crate::exchange::RequestContext;
use crate::exchange::hold::{Hold, Holds};
use crate::exchange::reply::{Answer, ReplySource};
use std::rc::Rc;
use std::sync::Arc;
use weir_net::io::reuse::Shared;
use weir_policy::TargetId;
use weir_policy::sticky::Cookies;

/// The cookies of a balancer's targets.
pub(crate) struct Sticky {
    name: String,
    cookies: Arc<Cookies>,
}

impl Sticky {
    /// The cookies of this name.
    pub fn new(name: &str, cookies: Arc<Cookies>) -> Sticky {
        Sticky { name: name.to_owned(), cookies }
    }

    /// The target that the request names.
    pub fn target(&self, ex: &Exchange) -> Option<TargetId> {
        self.cookies.target(ex.request.cookie(&self.name)?)
    }

    /// The Set-Cookie value of a target.
    fn set_cookie(&self, target: TargetId, secure: bool) -> Option<String> {
        let value = self.cookies.value(target)?;
        let secure = if secure { "; Secure" } else { "" };
        Some(format!("{}={value}; Path=/; HttpOnly; SameSite=Lax{secure}", self.name))
    }
}

impl Lb {
    /// Picks as a step of the loop would, and sets the cookie on the way back.
    pub async fn stick(self: &Rc<Self>, ex: Shared<Exchange>, mut ctx: RequestContext) -> Answer {
        let named = self.sticky.as_ref().and_then(|s| s.target(&ex));
        let mut holds = Holds::default();
        let PickedNode { node, hold } = match self.pick(&ex, &mut ctx).await {
            Ok(routed) => routed,
            Err(failure) => return Err(failure),
        };
        let newest = ctx.moves().then(|| self.newest.balancer(self.id)).flatten().map(|(lb, _)| lb);
        let target = hold.as_ref().map(|h| h.target());
        if let Some(hold) = hold {
            holds.push(Hold::Target(hold));
        }
        let mut answer = holds.around(Exchange::start(&ex, ctx, node).await);
        if let (Ok(reply), Some(target)) = (&mut answer, target)
            && named != Some(target)
            && let Some(cookie) = newest
                .as_ref()
                .unwrap_or(self)
                .sticky
                .as_ref()
                .and_then(|s| s.set_cookie(target, ex.is_https()))
        {
            match &mut reply.source {
                ReplySource::Origin(origin) => origin.add.push(("Set-Cookie", cookie.into_bytes())),
                ReplySource::Local(own) => Rc::make_mut(own).headers.push(("Set-Cookie".to_owned(), cookie)),
            }
        }
        answer
    }
}
