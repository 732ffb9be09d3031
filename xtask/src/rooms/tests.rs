//! Rooms in small trees: what is found, and what is let pass.

use super::table::room;
use super::*;

/// `low` lies below `high`, which may know it.
const TWO: Layout = Layout {
    folder: "crates/x",
    rooms: &[room("low", "what lies below all", &[]), room("high", "what stands on it", &["low"])],
};

fn tree(files: &[(&str, &str)]) -> Tree {
    let always = [("low/mod.rs", "")];
    Tree::new(files.iter().chain(&always).map(|(p, t)| ((*p).to_owned(), (*t).to_owned())).collect())
}

fn problems(files: &[(&str, &str)]) -> Vec<String> {
    judge(&TWO, &tree(files))
}

#[test]
fn a_room_knows_whom_the_table_lets_it() {
    let files =
        [("low/a.rs", "use super::b::B;"), ("low/b.rs", ""), ("high/mod.rs", "use crate::low::{a::A, b};")];
    assert_eq!(problems(&files), [""; 0]);
}

#[test]
fn an_edge_upwards_is_found_with_place_and_remedy() {
    let found = problems(&[
        (
            "low/a.rs",
            "use std::fs;\n\nuse crate::{\n    high::mid::{\n        deep::D as E,\n    },\n};\n#[cfg(test)]\nuse crate::high::H;",
        ),
        ("high/mod.rs", "pub use mid::deep;"),
        ("high/mid/deep.rs", ""),
        ("high/mid/mod.rs", ""),
    ]);
    assert_eq!(found.len(), 1, "{found:?}");
    let wanted = "crates/x/src/low/a.rs:5: crate::high::mid::deep::D (high/mid/deep.rs): the room `low` may not know `high`; ";
    assert!(
        found[0].starts_with(wanted) && found[0].ends_with("say so in xtask/src/rooms/table"),
        "{found:?}"
    );
    let found = problems(&[("low/a.rs", "fn f() {\n super::super::high::g() }"), ("high/mod.rs", "")]);
    assert!(
        found.len() == 1 && found[0].starts_with("crates/x/src/low/a.rs:2: super::super::high::g "),
        "{found:?}"
    );
}

#[test]
fn rooms_and_the_table_name_the_same() {
    let found = problems(&[("high.rs", ""), ("new.rs", ""), ("lib.rs", "")]);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].starts_with("crates/x/src/lib.rs:1: the room `lib` is not in the table; "), "{found:?}");
    assert!(found[1].starts_with("crates/x/src/new.rs:1: the room `new` "), "{found:?}");
    assert!(problems(&[])[0].contains("has no room `high` any more"));
}

#[test]
fn a_knot_of_eleven_is_found_and_one_of_ten_is_not() {
    let circle = |n: usize| -> Vec<(String, String)> {
        (0..n).map(|i| (format!("low/f{i:02}.rs"), format!("\nuse super::f{:02}::F;", (i + 1) % n))).collect()
    };
    let judged = |n: usize| {
        let mut files: Vec<(&str, &str)> = vec![("high.rs", "")];
        let circle = circle(n);
        files.extend(circle.iter().map(|(p, t)| (p.as_str(), t.as_str())));
        problems(&files)
    };
    assert_eq!(judged(10), [""; 0]);
    let found = judged(11);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].starts_with("crates/x/src/: 11 files all know each other, over others: low/f00.rs, "),
        "{found:?}"
    );
    assert!(
        found[0].contains("low/f10.rs; without crates/x/src/low/f00.rs:2: super::f01::F it would be 0"),
        "{found:?}"
    );
}

#[test]
fn the_table_lists_the_lowest_first() {
    const HELD: Layout = Layout {
        folder: "crates/x",
        rooms: &[
            room("low", "what lies below all", &["high"]),
            room("high", "", &["low"]),
            room("low", "what lies below all", &[]),
        ],
    };
    let found = order(&HELD).join("\n");
    for part in ["may know `high`, which does not", "no purpose", "stands there twice"] {
        assert!(found.contains(part), "{part}: {found}");
    }
}

#[test]
fn rooms_are_shown_with_their_edges_and_the_knot() {
    let files =
        [("low/a.rs", "use crate::high::H;"), ("low/b.rs", ""), ("high.rs", "use crate::low::{a::A, b::B};")];
    assert_eq!(
        show::of_crate("crates/x", Some(&TWO), &tree(&files)),
        "crates/x: 4 files in 2 rooms, from the lowest\n\
         \x20 room  files  lines  known by  knows (files that know x files known)\n\
         \x20 low       3      1         1  high 1\n\
         \x20 high      1      1         1  low 2\n\
         \x20 knot: 2 files all know each other, over others: high.rs, low/a.rs; without high.rs:1: crate::low::a::A it would be 0\n\
         \x20 2 files in it if what a module's file names of its own folder counts\n\
         \x20 most known: high.rs 1, low/a.rs 1, low/b.rs 1\n"
    );
}

#[test]
fn a_crate_without_an_entry_is_found() {
    assert_eq!(absent("crates/x", &[TWO]), None);
    assert!(
        absent("crates/y", &[TWO]).is_some_and(|found| found.starts_with("crates/y: the crate is not in"))
    );
}
