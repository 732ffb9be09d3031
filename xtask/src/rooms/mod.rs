//! Rooms: the folders inside a crate's `src` use only those that the table lists, and no large set of files depends on
//! itself.
//!
//! A file knows another if it names something in it: in a `use`, or by a path in its code. Names are followed through
//! re-exports (`pub use`) to the file that declares them. What is compiled for tests does not count. A method called on
//! a value from elsewhere is not found; the file that names its type is.

mod knot;
mod names;
mod show;
mod table;
mod tokens;
mod tree;

pub(crate) use show::show;

use std::path::Path;
use table::{Layout, Room, TABLE};
use tree::{Edge, Tree};

/// A larger set of files that all know each other cannot be understood file by file.
const LARGEST_KNOT: usize = 10;

/// Where a changed layout is written down.
const WHERE: &str = "xtask/src/rooms/table";

/// What is wrong with the rooms of the crates in the table, one sentence each.
pub(crate) fn check(root: &Path) -> Vec<String> {
    let mut problems: Vec<_> =
        show::folders(root).iter().filter_map(|folder| absent(folder, TABLE)).collect();
    let judged = TABLE.iter().flat_map(|held| judge(held, &Tree::read(&root.join(held.folder).join("src"))));
    problems.extend(judged);
    problems
}

/// A crate that the table leaves out.
fn absent(folder: &str, table: &[Layout]) -> Option<String> {
    let is_held = table.iter().any(|held| held.folder == folder);
    (!is_held).then(|| {
        format!(
            "{folder}: the crate is not in the table; give it a file in {WHERE}, and list that in its mod.rs"
        )
    })
}

fn judge(held: &Layout, tree: &Tree) -> Vec<String> {
    let mut problems = order(held);
    problems.extend(presence(held, tree));
    problems.extend(tree.edges.iter().filter_map(|e| forbidden(held, tree, e)));
    problems.extend(knotted(held, tree));
    problems
}

/// The table itself: each room once, with a purpose, over all that it knows.
fn order(held: &Layout) -> Vec<String> {
    let mut problems = Vec::new();
    for (level, room) in held.rooms.iter().enumerate() {
        let at = format!("{WHERE}: {}: the room `{}`", held.folder, room.name);
        let below = |name: &str| held.rooms[..level].iter().any(|r| r.name == name);
        if below(room.name) {
            problems.push(format!("{at} stands there twice; join its lines"));
        }
        if room.purpose.split_whitespace().count() < 3 {
            problems.push(format!("{at} has no purpose; say in a sentence what it is for"));
        }
        for known in room.knows.iter().filter(|known| !below(known)) {
            problems.push(format!(
                "{at} may know `{known}`, which does not lie below it; put that one's line above"
            ));
        }
    }
    problems
}

/// Rooms without a line, and lines without a room.
fn presence(held: &Layout, tree: &Tree) -> Vec<String> {
    let mut problems = Vec::new();
    let mut unlisted: Vec<&str> = Vec::new();
    for file in &tree.files {
        if find(held, &file.room).is_none() && !unlisted.contains(&file.room.as_str()) {
            unlisted.push(&file.room);
            problems.push(format!(
                "{}/src/{}:1: the room `{}` is not in the table; move the file into a room, or give it a line in {WHERE}",
                held.folder, file.path, file.room
            ));
        }
    }
    for room in held.rooms.iter().filter(|room| !tree.files.iter().any(|f| f.room == room.name)) {
        problems.push(format!(
            "{WHERE}: {} has no room `{}` any more; take its line out",
            held.folder, room.name
        ));
    }
    problems
}

/// What is wrong with a file knowing another.
fn forbidden(held: &Layout, tree: &Tree, edge: &Edge) -> Option<String> {
    let (from, to) = (&tree.files[edge.from], &tree.files[edge.to]);
    let room = find(held, &from.room)?;
    if from.room == to.room || room.knows.contains(&to.room.as_str()) {
        return None;
    }
    Some(format!(
        "{}/src/{}:{}: {} ({}): the room `{}` may not know `{}`; pass in what it needs, or move what both need to a room \
         below both; if the layout has changed, say so in {WHERE}",
        held.folder, from.path, edge.line, edge.path, to.path, from.room, to.room
    ))
}

fn knotted(held: &Layout, tree: &Tree) -> Option<String> {
    let knot = knot::largest(tree);
    let src = format!("{}/src/", held.folder);
    (knot.len() > LARGEST_KNOT)
        .then(|| format!("{src}: {}; {LARGEST_KNOT} files at most may", show::knot(tree, &knot, &src)))
}

fn find<'a>(held: &'a Layout, room: &str) -> Option<&'a Room> {
    held.rooms.iter().find(|r| r.name == room)
}

#[cfg(test)]
mod tests;
