//! A stream of messages through the codec, as a relay would lead it, in pieces of any size.

use std::net::IpAddr;
use weir_http1::*;

/// The codec's settings for a stream.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    pub peer: Option<IpAddr>,
    pub https: bool,
    pub port: Option<u16>,
    pub trusted: Networks,
    pub upgrades: Vec<String>,
    pub connect: Vec<String>,
    pub raw_paths: bool,
    pub limits: Limits,
    pub edits: Edits,
    pub asked: RequestInfo,
    pub client: Client,
}

impl Setup {
    pub fn plain() -> Setup {
        Setup { peer: Some("127.0.0.1".parse().unwrap()), port: Some(80), ..Setup::default() }
    }

    pub fn hop(&self) -> Hop<'_> {
        Hop {
            peer: self.peer,
            https: self.https,
            port: self.port,
            trusted: &self.trusted,
            upgrades: &self.upgrades,
            connect: &self.connect,
            raw_paths: self.raw_paths,
            own: false,
        }
    }
}

/// The result of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A whole message, head and body, as it is forwarded; whether the connection is kept, and where it ended in the
    /// stream.
    Whole {
        out: Vec<u8>,
        kept: bool,
        end: usize,
    },
    /// A head went on, and its body has not ended.
    Open {
        out: Vec<u8>,
    },
    /// weir answers itself.
    Here(OwnAnswer),
    /// Everything behind is bytes of a tunnel.
    Tunnel {
        out: Vec<u8>,
    },
    Refused(&'static Rule),
}

/// Leads a stream of requests or of responses through the codec.
pub struct Way<'a> {
    setup: &'a Setup,
    responses: bool,
    seek: Seek,
    bytes: Vec<u8>,
    at: usize,
    request: Request,
    response: Response,
    body: Option<Body>,
    pub events: Vec<Event>,
    over: bool,
}

struct Body {
    decoder: Decoder,
    encoder: Encoder,
    head: Vec<u8>,
    data: Vec<u8>,
    kept: bool,
}

impl<'a> Way<'a> {
    pub fn new(setup: &'a Setup, responses: bool) -> Way<'a> {
        Way {
            setup,
            responses,
            seek: Seek::default(),
            bytes: Vec::new(),
            at: 0,
            request: Request::default(),
            response: Response::default(),
            body: None,
            events: Vec::new(),
            over: false,
        }
    }

    pub fn feed(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        while !self.over {
            match self.turn() {
                Ok(true) => {}
                Ok(false) => break,
                Err(refusal) => {
                    self.body = None;
                    self.stop(Event::Refused(refusal.0));
                }
            }
        }
    }

    /// The connection has ended.
    pub fn finish(mut self) -> Vec<Event> {
        if let Some(mut body) = self.body.take() {
            match body.decoder.eof() {
                Ok(()) => self.events.push(body.whole(&self.response, self.bytes.len(), false)),
                Err(_) => self.events.push(Event::Open { out: body.written() }),
            }
        }
        self.events
    }

    fn stop(&mut self, event: Event) {
        self.events.push(event);
        self.over = true;
    }

    /// One head, or what there is of a body; false if more is needed.
    fn turn(&mut self) -> Result<bool, Refusal> {
        let setup = self.setup;
        let mut body = match self.body.take() {
            Some(body) => body,
            None => {
                let seek = if self.responses { Seek::response } else { Seek::request };
                let Some(n) = seek(&mut self.seek, &self.bytes[self.at..], &setup.limits)? else {
                    return Ok(false);
                };
                let head = self.bytes[self.at..self.at + n].to_vec();
                self.seek.reset();
                self.at += n;
                let Some(body) = (if self.responses { self.response(&head)? } else { self.request(&head)? })
                else {
                    return Ok(false);
                };
                body
            }
        };
        loop {
            match body.decoder.next(&self.bytes, &mut self.at)? {
                Piece::Data(from, to) => body.data.extend_from_slice(&self.bytes[from..to]),
                Piece::More => {
                    self.body = Some(body);
                    return Ok(false);
                }
                Piece::End => break,
            }
        }
        let kept = body.kept;
        let event = if self.responses {
            body.whole(&self.response, self.at, kept)
        } else {
            body.whole_request(&self.request, self.at)
        };
        self.events.push(event);
        self.over = !kept;
        Ok(kept)
    }

    fn request(&mut self, head: &[u8]) -> Result<Option<Body>, Refusal> {
        let setup = self.setup;
        self.request.parse(head, &setup.limits)?;
        let checked = check_request(&mut self.request, &setup.hop())?;
        if let Some(here) = checked.here {
            self.stop(Event::Here(here));
            return Ok(None);
        }
        let framing = self.request.framing();
        let body = match framing {
            Framing::None => BodyOut::None,
            Framing::Length(n) => BodyOut::Length(n),
            Framing::Chunked => BodyOut::Chunked,
            Framing::Close => unreachable!("no request ends with its connection"),
        };
        let mut out = Vec::new();
        render_request(&self.request, &checked, &setup.hop(), &setup.edits, body, &mut out);
        if checked.upgrade {
            self.stop(Event::Tunnel { out });
            return Ok(None);
        }
        Ok(Some(Body {
            decoder: Decoder::new(framing, &setup.limits),
            encoder: Encoder::new(body),
            head: out,
            data: Vec::new(),
            kept: !checked.close,
        }))
    }

    fn response(&mut self, head: &[u8]) -> Result<Option<Body>, Refusal> {
        let setup = self.setup;
        let quick = Response::default().take(head, setup.asked, &setup.limits);
        let parsed = self.response.parse(head, setup.asked, &setup.limits);
        assert_eq!(quick, parsed.is_ok().then_some(head.len()), "the quick way takes what the other does");
        parsed?;
        let framing = body_to_client(&self.response, setup.client);
        let mut out = Vec::new();
        render_response(&self.response, setup.client, &setup.edits, &[], framing, None, &mut out);
        let tunnel =
            self.response.status() == 101 || setup.asked.connect && self.response.status() / 100 == 2;
        if tunnel {
            self.stop(Event::Tunnel { out });
            return Ok(None);
        }
        Ok(Some(Body {
            decoder: Decoder::new(self.response.framing(), &setup.limits),
            encoder: Encoder::new(framing),
            head: out,
            data: Vec::new(),
            kept: self.response.keep_alive(),
        }))
    }
}

impl Body {
    /// Head and data: in one chunk, however it came.
    fn written(&self) -> Vec<u8> {
        let mut out = self.head.clone();
        if !self.data.is_empty() {
            self.encoder.before(self.data.len(), &mut out);
            out.extend_from_slice(&self.data);
            self.encoder.after(&mut out);
        }
        out
    }

    fn whole(&self, response: &Response, end: usize, kept: bool) -> Event {
        let mut out = self.written();
        self.encoder.end_without(Some(self.decoder.trailers()), |n| response.names(n), &mut out);
        Event::Whole { out, kept, end }
    }

    fn whole_request(&self, request: &Request, end: usize) -> Event {
        let mut out = self.written();
        self.encoder.end_without(Some(self.decoder.trailers()), |n| request.names(n), &mut out);
        Event::Whole { out, kept: self.kept, end }
    }
}

/// Everything at once.
pub fn at_once(setup: &Setup, responses: bool, bytes: &[u8]) -> Vec<Event> {
    let mut way = Way::new(setup, responses);
    way.feed(bytes);
    way.finish()
}
