//! What the keeper does with its door, which is none of a process here.

use super::*;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Mutex, MutexGuard};

/// Fleets by which nothing is served.
struct FakeDoor {
    set: Mutex<FleetSet>,
    /// Whether another change is applied just now.
    is_busy: AtomicBool,
}

impl FakeDoor {
    fn lock(&self) -> MutexGuard<'_, FleetSet> {
        self.set.lock().expect("no panic")
    }

    /// Failed questions by fleet.
    fn failed(&self) -> Vec<u64> {
        self.lock().fleets.iter().map(|fleet| fleet.lists[ListResult::Failed as usize]).collect()
    }
}

impl Applies for FakeDoor {
    fn has_room(&self) -> bool {
        true
    }

    fn note(&self, act: &mut dyn FnMut(&mut FleetSet)) -> bool {
        let is_free = !self.is_busy.load(SeqCst);
        if is_free {
            act(&mut self.lock());
        }
        is_free
    }

    fn change(&self, act: &mut dyn FnMut(&mut FleetSet, u64) -> bool) -> Result<(), String> {
        act(&mut self.lock(), 0);
        Ok(())
    }

    fn read<T>(&self, read: impl FnOnce(&FleetSet, u64) -> T) -> T {
        read(&self.lock(), 0)
    }

    fn ask(&self, _: Vec<Withdrawn>) -> (Arc<Question>, Vec<Answer>) {
        panic!("no member is withdrawn");
    }

    fn say(&self, _: String) {}

    fn warn(&self, _: String) {}
}

/// Three fleets: two of one file that is missing, and one of another.
fn keeper() -> Keeper<FakeDoor> {
    let path = std::env::temp_dir().join(format!("weir-keeper-{}", std::process::id()));
    let fleet = |name: &str, file: &str| {
        format!("{name} = find.file(\"{}/{file}.json\", lambda: server(\"app\"))\n", path.display())
    };
    let text = [fleet("a", "gone"), fleet("b", "gone"), fleet("c", "other")].concat()
        + "listen(\"127.0.0.1:0\", lb.random([a, b, c]), name = \"front\")\n";
    let request = weir_topology::Request { source: text.into(), name: "t.star".into(), ..Default::default() };
    let evaluated = weir_topology::evaluate(&request).unwrap_or_else(|errors| panic!("{errors:#?}"));
    let set = FleetSet::default().renewed(evaluated.plan.points.first().expect("a point"), 0, Duration::ZERO);
    let door = FakeDoor { set: Mutex::new(set), is_busy: AtomicBool::new(false) };
    let mut keeper = Keeper::new(Arc::new(door), Sources::new(Readers::default(), Key::new(1)));
    keeper.follow_again();
    keeper
}

#[test]
fn questions_that_fail_while_another_change_is_applied_are_counted_after_it() {
    let mut keeper = keeper();
    // No source has the last number.
    for number in [0, 1, 0, 7] {
        keeper.note_failure(number);
    }
    keeper.door.is_busy.store(true, SeqCst);
    keeper.count_failures();
    assert_eq!((keeper.door.failed(), keeper.pause()), (vec![0, 0, 0], Some(ROOM)));
    keeper.door.is_busy.store(false, SeqCst);
    keeper.count_failures();
    assert_eq!((keeper.door.failed(), keeper.pause()), (vec![2, 2, 1], None));
    // Each once.
    keeper.count_failures();
    assert_eq!(keeper.door.failed(), [2, 2, 1]);
}
