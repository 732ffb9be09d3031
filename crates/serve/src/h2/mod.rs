//! HTTP/2 behind the two ends of an exchange: [`server`] faces clients, [`client`] faces origins. Knows no node, no
//! policy, no graph. Frames, HPACK, streams and windows are `weir_http2`'s; what a message must look like is
//! `weir_http1`'s, as for HTTP/1.1.

pub(crate) mod client;
mod link;
pub(crate) mod server;
mod stall;

use weir_http1::Trailers;
use weir_plan::fixed;

/// The first bytes of a client that uses HTTP/2 with prior knowledge (RFC 9113 §3.4).
pub(crate) use weir_http2::PREFACE;

// What a plan shows is what the codec does.
const _: () = {
    assert!(fixed::MAX_IDLE_FRAMES as i32 == weir_http2::MAX_IDLE_FRAMES);
    assert!(fixed::MAX_IDLE_FRAMES_NS == weir_http2::MAX_IDLE_FRAMES_NS);
    assert!(fixed::MAX_INTERIM == weir_http2::MAX_INTERIMS as u32);
};

/// The trailers that may be forwarded; `None`: there are none. `named`: whether the head's Connection names a field.
fn passed_on(trailers: &Trailers, named: impl Fn(&[u8]) -> bool) -> Option<Trailers> {
    let mut passed = Trailers::default();
    let sensitive = trailers.sensitive_names();
    trailers.passed_on(named).for_each(|(name, value)| passed.push(name, value, sensitive.has(name)));
    (!passed.is_empty()).then_some(passed)
}
