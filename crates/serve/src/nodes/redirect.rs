//! `redirect(to, status=302)`: sends the client elsewhere. (`respond` is an [`LocalAnswer`] that the plan holds ready.)
//!
//! Draws: nothing.

use crate::exchange::Exchange;
use crate::exchange::RequestContext;
use crate::exchange::reply::LocalAnswer;
use crate::exchange::view::View;
use std::rc::Rc;

/// The node.
pub(crate) struct Redirect {
    /// The template of Location.
    pub to: String,
    /// 300 to 399.
    pub status: u16,
}

impl Redirect {
    /// The answer to this request.
    pub fn answer(&self, ex: &Exchange, ctx: &RequestContext) -> Rc<LocalAnswer> {
        let to = View::new(ex, ctx.edits.as_deref()).fill_location(&self.to);
        // Bytes beyond ASCII are left out of a header.
        let to: String = to.iter().filter(|b| b.is_ascii_graphic()).map(|b| char::from(*b)).collect();
        let body = format!("{} {}\n", self.status, weir_http1::reason(self.status));
        Rc::new(LocalAnswer {
            status: self.status,
            headers: vec![("Location".to_owned(), to)],
            body: body.into_bytes().into(),
            by_server: false,
        })
    }
}
