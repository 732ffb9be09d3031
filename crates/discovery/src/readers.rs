//! How many threads of a process read files of lists.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The most threads that read files: each followed file has one.
const MOST_READERS: usize = 4096;

/// The threads of a process that read files of lists, and their limit. Clones count the same threads: a process has one of
/// these for all of its sources. Threads of sources that have ended count until their last reading is over, which a file
/// system may hold up for ever.
#[derive(Clone, Debug)]
pub struct Readers {
    count: Arc<AtomicUsize>,
    most: usize,
}

impl Default for Readers {
    fn default() -> Readers {
        Readers::with_limit(MOST_READERS)
    }
}

impl Readers {
    /// No thread yet, of at most this many.
    fn with_limit(most: usize) -> Readers {
        Readers { count: Arc::default(), most }
    }

    /// Counts one more thread, until the result is dropped.
    ///
    /// # Errors
    /// There are too many.
    pub(crate) fn admit(&self) -> io::Result<LiveReader> {
        let before = self.count.fetch_add(1, Ordering::Relaxed);
        let reader = LiveReader(self.count.clone());
        if before < self.most {
            return Ok(reader);
        }
        Err(io::Error::other(format!(
            "{} files of lists are followed or still being read: follow fewer, or see to file systems that \
             do not answer",
            self.most
        )))
    }
}

/// A thread that counts.
#[derive(Debug)]
pub(crate) struct LiveReader(Arc<AtomicUsize>);

impl Drop for LiveReader {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_count_until_they_end_and_for_all_that_share_the_limit() {
        let readers = Readers::with_limit(2);
        let first = readers.admit().expect("one");
        let _second = readers.clone().admit().expect("two");
        for _ in 0..3 {
            let text = readers.admit().expect_err("three").to_string();
            assert!(text.starts_with("2 files of lists are followed or still being read: "), "{text}");
        }
        drop(first);
        let _third = readers.admit().expect("two again");
        assert!(readers.admit().is_err());
        // Those of another process, or test.
        assert!(Readers::with_limit(2).admit().is_ok());
    }
}
