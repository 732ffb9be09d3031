//! `redirect(to, status=302)`: sends the client elsewhere. (`respond` is an [`LocalAnswer`] that the plan holds ready.)
//!
//! Draws: nothing.

use crate::exchange::reply::LocalAnswer;
use crate::exchange::view::View;
use crate::exchange::{Exchange, Failure, RequestContext};
use std::rc::Rc;
use std::sync::Arc;

/// The node.
pub(crate) struct Redirect {
    /// The template of Location.
    pub to: String,
    /// 300 to 399.
    pub status: u16,
}

impl Redirect {
    /// The answer to this request.
    ///
    /// # Errors
    /// 400 if the request lacks a part of the URL: RFC 9110 §4.2.2 forbids one with an empty host.
    pub fn answer(&self, ex: &Exchange, ctx: &RequestContext) -> Result<Rc<LocalAnswer>, Failure> {
        let to = View::new(ex, ctx.edits.as_deref()).fill_location(&self.to).ok_or(Failure::client(400))?;
        // Bytes beyond ASCII are left out of a header.
        let to: String = to.iter().filter(|b| b.is_ascii_graphic()).map(|b| char::from(*b)).collect();
        let body = format!("{} {}\n", self.status, weir_http1::reason(self.status));
        Ok(Rc::new(LocalAnswer {
            status: self.status,
            headers: vec![("Location".to_owned(), to)],
            body: body.into_bytes().into(),
            by_server: false,
            load_fields: Arc::default(),
        }))
    }
}
