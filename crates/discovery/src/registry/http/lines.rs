//! An answer that goes on, line by line.

use super::connection::Connection;
use crate::fault::{Defect, FaultKind};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use std::time::Duration;
use tokio::time::timeout;

/// The most bytes of a line.
const MOST_LINE: usize = 8 << 20;

/// The lines of an answer, as they come.
#[derive(Debug)]
pub(in crate::registry) struct Lines {
    body: Incoming,
    /// It ends with the lines.
    _connection: Option<Connection>,
    url: String,
    /// What has come and was not returned; the first `read` bytes were.
    buffer: Vec<u8>,
    read: usize,
}

impl Lines {
    pub(super) fn new(body: Incoming, connection: Option<Connection>, url: String) -> Lines {
        Lines { body, _connection: connection, url, buffer: Vec::new(), read: 0 }
    }

    /// The next line without its end; `None`: the answer has ended. It may be dropped while it waits, and loses nothing.
    ///
    /// # Errors
    /// Nothing came within this time, the line is too long, or the answer is cut off.
    pub(in crate::registry) async fn next(&mut self, within: Duration) -> Result<Option<Vec<u8>>, Defect> {
        let mut searched = self.read;
        loop {
            if let Some(end) = self.buffer[searched..].iter().position(|b| *b == b'\n') {
                let line = self.buffer[self.read..searched + end].to_vec();
                self.read = searched + end + 1;
                return Ok(Some(line));
            }
            self.buffer.drain(..self.read);
            self.read = 0;
            searched = self.buffer.len();
            if self.buffer.len() > MOST_LINE {
                let problem = format!("a line of {} has more than {} MiB", self.url, MOST_LINE >> 20);
                return Err(Defect::new(FaultKind::TooLarge, problem, "is that address the registry's?"));
            }
            match timeout(within, self.body.frame()).await {
                Ok(Some(Ok(frame))) => self.buffer.extend_from_slice(&frame.into_data().unwrap_or_default()),
                Ok(Some(Err(e))) => return Err(super::cut_off(&self.url, &e)),
                Ok(None) if self.buffer.is_empty() => return Ok(None),
                Ok(None) => return Ok(Some(std::mem::take(&mut self.buffer))),
                Err(_) => return Err(super::late(&self.url, within)),
            }
        }
    }
}
