//! The drawing of a topology, as SVG: layers from left to right, where requests go.
//!
//! After Sugiyama, Tagawa and Toda, *Methods for visual understanding of hierarchical system structures* (1981): nodes
//! of one site become one box ([`fold`]), boxes get layers by the longest way to them ([`layers`]), long edges get
//! waypoints in the layers between, each layer is ordered by barycenters ([`order`]), and heights follow the neighbours
//! ([`place`]). The layout is made once for a plan; what is said in a box may change with each [`Drawing::svg`].
//!
//! A status page shows a box for each site. A picture of a plan ([`pictures`]) is made to be read: chains are one box
//! too ([`chains`]), which says what its nodes do ([`words`]), and how many lead to how many is drawn ([`links`]).

mod chains;
mod fold;
mod layers;
mod links;
mod order;
mod pictures;
mod place;
mod svg;
#[cfg(test)]
mod tests;
mod text;
mod words;

pub use pictures::{Form, Picture, pictures, write};

use fold::Boxed;
use weir_plan::{NodeId, Point, Spec};

/// The style of a drawing, for the page that contains it; it follows the page's colours.
pub const STYLE: &str = svg::STYLE;

/// A note in a box, beside the text from the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Note {
    /// A few words.
    pub words: String,
    /// How it is, as a class of the style: `good`, `warn`, `bad`, or nothing.
    pub class: &'static str,
}

/// A drawing without its notes; by default of nothing.
#[derive(Clone, Debug, Default)]
pub struct Drawing {
    boxes: Vec<PlacedBox>,
    edges: Vec<Way>,
    width: f64,
    height: f64,
}

/// A box with its position.
#[derive(Clone, Debug)]
struct PlacedBox {
    of: Boxed,
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

/// An edge: the points through which it goes.
#[derive(Clone, Debug)]
struct Way {
    /// The boxes at its ends.
    from: usize,
    to: usize,
    points: Vec<(f64, f64)>,
    /// A fallback, taken if no other edge can be.
    aside: bool,
    /// In a picture: the lines of a bundle, by how far from the middle each begins and ends. None: it is one line.
    lanes: Vec<(f64, f64)>,
}

/// Between the boxes of two layers, px.
const BETWEEN: f64 = 44.0;
/// The same in a picture, where bundles of lines cross.
const BUNDLE: f64 = 72.0;
/// Between two boxes of a layer.
const GAP: f64 = 14.0;
/// Around all of it.
const MARGIN: f64 = 6.0;
/// A box with two lines, and what a third adds.
const BOX: f64 = 42.0;
const LINE: f64 = 15.0;
/// The offset between the cards of a stack.
const STACK: f64 = 7.0;
/// The room of an edge that passes a layer.
const PASSING: f64 = 8.0;

impl Drawing {
    /// The layout of the graph behind these nodes. `noted`: the kinds of nodes that have room for a note in their box.
    pub fn new(point: &Point, roots: &[NodeId], noted: impl Fn(&Spec) -> bool) -> Drawing {
        let folded = layers::alike(fold::fold(point, roots));
        let layered = layers::layered(folded);
        let laid = order::ordered(&layered);
        let has_note = |b: &Boxed| {
            b.nodes.first().is_some_and(|id| noted(&point.specs[point.nodes[*id as usize].spec as usize]))
        };
        place::placed(layered, laid, BETWEEN, has_note)
    }

    /// A picture of what these nodes lead to, with chains folded.
    fn picture(point: &Point, roots: &[NodeId]) -> Drawing {
        let mut folded = layers::alike(chains::folded(fold::fold(point, roots)));
        let links = links::links(point, &folded);
        words::say(point, &mut folded, &links);
        let layered = layers::layered(folded);
        let laid = order::ordered(&layered);
        let mut drawing = place::placed(layered, laid, BUNDLE, |_| false);
        for way in &mut drawing.edges {
            way.lanes = links.get(&(way.from, way.to)).map(links::Link::lanes).unwrap_or_default();
        }
        drawing
    }

    /// The drawing. `note`: the note on the nodes of a box.
    pub fn svg(&self, note: impl Fn(&[NodeId]) -> Option<Note>) -> String {
        svg::svg(self, &note)
    }
}
