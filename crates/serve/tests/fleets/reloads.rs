//! Reloads of the file that names the list.

use crate::list::{self, Members, api, api_with};
use crate::load::{two_loops, under_load};
use crate::support::{Mode, Origin, serve_whole, until};

#[test]
fn a_reload_keeps_the_members_and_their_state() {
    let (a, b) = (Origin::new("a"), Origin::new("b"));
    let file = Members::new("kept");
    file.list(&[&a, &b]);
    let eject = "eject = eject(consecutive = 1, base = 3600 * s, max = 3600 * s)";
    let x = serve_whole(&api(&file, &format!("lb.round_robin(apps, {eject})")), two_loops());
    a.answer(Mode::Close);
    until("a is ejected", || x.share("b", 10) == 10);
    a.answer(Mode::Status(200));
    let (asked, wrong) = under_load(x.addr(), false, |_| {
        for round in 1..4 {
            let delayed = format!("rewrite(lb.random(apps, {eject}), set = {{\"x-round\": \"{round}\"}})");
            let said = x.reload(&api(&file, &delayed)).expect("it can be served");
            assert!(!said.contains("target"), "{said}");
            assert_eq!(x.remote().config().generation, round);
        }
    });
    assert!(wrong.is_empty(), "of {asked}: {wrong:?}");
    assert_eq!(x.share("b", 20), 20, "its ejection lasts for an hour");
    // The list is still followed.
    let c = Origin::new("c");
    file.list(&[&a, &b, &c]);
    until("c is there", || x.share("c", 10) > 0);
    assert_eq!(x.remote().config().generation, 3);
    let same = api(&file, &format!("rewrite(lb.random(apps, {eject}), set = {{\"x-round\": \"3\"}})"));
    let said = x.reload(&same).expect("it can be served");
    assert!(said.contains("nothing has changed"), "{said}");
    assert_eq!(list::targets(&x).len(), 3);
}

/// `grace` counts from when members were withdrawn, and without `shrink` they go at once.
#[test]
fn a_reload_with_another_doubt_concerns_members_that_are_withdrawn_already() {
    let (a, b) = (Origin::new("a"), Origin::new("b"));
    for doubt in ["grace = 1 * ms", "shrink = None"] {
        let file = Members::new("doubt");
        file.list(&[&a, &b]);
        let x = serve_whole(&api_with(&file, "lb.random(apps)", ", grace = 3600 * s"), two_loops());
        file.write("[]");
        until("they are withdrawn", || x.remote().view(false).fleets[0].withdrawn == 2);
        x.reload(&api_with(&file, "lb.random(apps)", &format!(", {doubt}"))).expect("it can be served");
        until("they have ended", || list::targets(&x).is_empty());
        until("both loops know", || (0..4).all(|_| x.get().status == 503));
        let fleet = x.remote().view(false).fleets[0].clone();
        assert_eq!((fleet.members, fleet.withdrawn), (0, 0), "{doubt}");
    }
}

#[test]
fn with_another_source_the_members_stay_until_it_has_spoken() {
    let (a, b) = (Origin::new("a"), Origin::new("b"));
    let (first, second) = (Members::new("first"), Members::new("second"));
    first.list(&[&a]);
    let x = serve_whole(&api(&first, "lb.random(apps)"), two_loops());
    assert_eq!(x.get().body, "a");
    // The hash of a plan has no paths.
    let said = x.reload(&api(&second, "lb.random(apps)")).expect("it can be served");
    assert_eq!(said, "generation 1: another source of fleet apps");
    assert_eq!(x.share("a", 8), 8);
    second.list(&[&b]);
    until("b has taken its place", || x.share("b", 8) == 8);
    // The first one is not followed any more.
    first.list(&[&a, &b]);
    let source = x.remote().view(false).fleets[0].source.clone();
    assert!(source.contains("second"), "{source}");
}

#[test]
fn fleets_come_and_go_with_reloads() {
    let (a, b) = (Origin::new("a"), Origin::new("b"));
    let file = Members::new("later");
    file.list(&[&b]);
    let plain = format!("listen(\"127.0.0.1:0\", server(addr = \"{}\"), name = \"front\")\n", a.addr);
    let x = serve_whole(&plain, two_loops());
    assert_eq!(x.get().body, "a");
    x.reload(&api_with(&file, "lb.random(apps)", ", name = \"later\"")).expect("it can be served");
    assert_eq!(x.share("b", 8), 8, "the first list is waited for");
    assert_eq!(x.remote().view(false).fleets[0].fleet, "later");
    file.list(&[&a]);
    until("the list is followed", || x.share("a", 8) == 8);
    x.reload(&plain).expect("it can be served");
    assert!(x.remote().view(false).fleets.is_empty());
}

/// A file with two fleets, `apps` and, for requests with a field of their own, `old`.
fn two(apps: &Members, old: &Members) -> String {
    let [apps, old] = [apps, old].map(|file| file.path().display().to_string());
    format!(
        "apps = find.file(\"{apps}\", lambda: server(\"app\"), name = \"apps\")\n\
        old = find.file(\"{old}\", lambda: server(\"app\"), name = \"old\")\n\
        listen(\"127.0.0.1:0\", route([(when(header = (\"x-old\", \"1\")), lb.random(old)), (when(path = \"/*\"), lb.random(apps))]), \
        name = \"front\")\n"
    )
}

/// The list that another fleet has had already is the first list of this one, and is not compared with what its former
/// source listed.
#[test]
fn a_fleet_may_turn_to_a_file_that_another_one_follows() {
    let (a, b, c) = (Origin::new("a"), Origin::new("b"), Origin::new("c"));
    let (first, second) = (Members::new("shared"), Members::new("left"));
    first.list(&[&a]);
    second.list(&[&b, &c]);
    let x = serve_whole(&two(&first, &second), two_loops());
    assert_eq!(x.share("a", 8), 8);
    x.reload(&two(&first, &first)).expect("it can be served");
    assert_eq!(x.get_with("X-Old: 1\r\n").body, "a");
    assert_eq!(x.remote().view(false).fleets.iter().map(|fleet| fleet.members).collect::<Vec<_>>(), [1, 1]);
}

/// Its members go on in a fleet of another name, while a fleet of its name has a file that is there already.
#[test]
fn fleets_change_their_files_and_no_request_fails() {
    let (a, b) = (Origin::new("a"), Origin::new("b"));
    let (blue, green) = (Members::new("blue"), Members::new("green"));
    blue.list(&[&a]);
    green.list(&[&b]);
    let x = serve_whole(&api(&blue, "lb.random(apps)"), two_loops());
    let (asked, wrong) = under_load(x.addr(), false, |_| {
        x.reload(&two(&green, &blue)).expect("it can be served");
    });
    assert!(wrong.is_empty(), "of {asked}: {wrong:?}");
    assert_eq!((x.share("b", 8), x.get_with("X-Old: 1\r\n").body.as_str()), (8, "a"));
}
