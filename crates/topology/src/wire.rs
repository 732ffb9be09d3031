//! How a request goes to the evaluating child and its answer comes back: JSON, and the nodes of a plan in binary
//! beside it, since there may be millions.
//!
//! Each part is preceded by its length (8 bytes, little-endian).

use crate::evaluate::{Evaluated, Request};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use weir_plan::diagnostic::Diagnostic;
use weir_plan::json;
use weir_plan::{Edge, Node, Plan};

/// Why a request or an answer cannot be written or read, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WireError(String);

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WireError {}

fn failed(why: impl fmt::Display) -> WireError {
    WireError(why.to_string())
}

/// The answer but for the nodes.
#[derive(Serialize, Deserialize)]
enum Head {
    Done {
        plan: Plan,
        warnings: Vec<Diagnostic>,
        #[serde(with = "crate::path_bytes::list")]
        files: Vec<PathBuf>,
        names: Vec<String>,
    },
    Wrong {
        findings: Vec<Diagnostic>,
    },
}

/// Bytes of one node.
const NODE: usize = 17;

/// A request as bytes.
pub(crate) fn request(request: &Request) -> Result<Vec<u8>, WireError> {
    // The source goes beside the JSON: it may be large, and need not be text.
    let head = Request { source: Vec::new(), ..request.clone() };
    let mut out = Vec::new();
    part(&mut out, &serde_json::to_vec(&head).map_err(failed)?);
    part(&mut out, &request.source);
    Ok(out)
}

/// A request from bytes.
pub(crate) fn read_request(bytes: &[u8]) -> Result<Request, WireError> {
    let mut rest = bytes;
    let mut request: Request = json::from_slice(take_part(&mut rest)?).map_err(failed)?;
    request.source = take_part(&mut rest)?.to_vec();
    Ok(request)
}

/// An answer as bytes.
pub(crate) fn answer(answer: Result<Evaluated, Vec<Diagnostic>>) -> Result<Vec<u8>, WireError> {
    let mut out = Vec::new();
    match answer {
        Err(findings) => part(&mut out, &serde_json::to_vec(&Head::Wrong { findings }).map_err(failed)?),
        Ok(Evaluated { mut plan, warnings, files }) => {
            let mut names = Names::default();
            let nodes: Vec<Vec<u8>> =
                plan.points.iter_mut().map(|p| names.encode(std::mem::take(&mut p.nodes))).collect();
            let head = Head::Done { plan, warnings, files, names: names.list };
            part(&mut out, &serde_json::to_vec(&head).map_err(failed)?);
            nodes.iter().for_each(|n| part(&mut out, n));
        }
    }
    Ok(out)
}

/// An answer from bytes.
pub(crate) fn read_answer(bytes: &[u8]) -> Result<Result<Evaluated, Vec<Diagnostic>>, WireError> {
    let mut rest = bytes;
    match json::from_slice(take_part(&mut rest)?).map_err(failed)? {
        Head::Wrong { findings } => Ok(Err(findings)),
        Head::Done { mut plan, warnings, files, names } => {
            for point in &mut plan.points {
                point.nodes = decode(take_part(&mut rest)?, &names)?;
            }
            plan.expand();
            Ok(Ok(Evaluated { plan, warnings, files }))
        }
    }
}

fn part(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    out.extend_from_slice(bytes);
}

fn take_part<'b>(rest: &mut &'b [u8]) -> Result<&'b [u8], WireError> {
    let (length, body) = rest.split_first_chunk::<8>().ok_or_else(|| failed("the answer is cut off"))?;
    let length = usize::try_from(u64::from_le_bytes(*length)).map_err(failed)?;
    let (part, after) = body.split_at_checked(length).ok_or_else(|| failed("the answer is cut off"))?;
    *rest = after;
    Ok(part)
}

/// Names of nodes, each once.
#[derive(Default)]
struct Names {
    list: Vec<String>,
    index: HashMap<String, u32>,
}

impl Names {
    fn encode(&mut self, nodes: Vec<Node>) -> Vec<u8> {
        let mut out = Vec::with_capacity(nodes.len() * NODE);
        for node in nodes {
            let (tag, target) = match node.to {
                Edge::None => (0u8, 0),
                Edge::Node(id) => (1, id),
                Edge::List(id) => (2, id),
            };
            let name = node.name.map_or(u32::MAX, |n| self.number(n));
            out.push(tag);
            for word in [node.site, node.spec, target, name] {
                out.extend_from_slice(&word.to_le_bytes());
            }
        }
        out
    }

    fn number(&mut self, name: String) -> u32 {
        let next = u32::try_from(self.list.len()).unwrap_or(u32::MAX);
        if let Some(found) = self.index.get(&name) {
            return *found;
        }
        self.list.push(name.clone());
        self.index.insert(name, next);
        next
    }
}

fn decode(bytes: &[u8], names: &[String]) -> Result<Vec<Node>, WireError> {
    let chunks = bytes.chunks_exact(NODE);
    if !chunks.remainder().is_empty() {
        return Err(failed("the nodes of the answer are cut off"));
    }
    let word =
        |chunk: &[u8], i: usize| chunk[1 + 4 * i..].first_chunk::<4>().map_or(0, |w| u32::from_le_bytes(*w));
    chunks
        .map(|chunk| {
            let target = word(chunk, 2);
            let to = match chunk[0] {
                0 => Edge::None,
                1 => Edge::Node(target),
                2 => Edge::List(target),
                other => return Err(WireError(format!("the answer has a node of kind {other}"))),
            };
            let name = match word(chunk, 3) {
                u32::MAX => None,
                i => {
                    let name = names.get(i as usize).cloned();
                    Some(name.ok_or_else(|| failed("the answer has a node without its name"))?)
                }
            };
            Ok(Node { site: word(chunk, 0), spec: word(chunk, 1), to, name })
        })
        .collect()
}
