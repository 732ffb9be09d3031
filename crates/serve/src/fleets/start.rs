//! The first lists: served without one a balancer would have no target, so they are waited for a while, as long as a source may
//! still give one.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
use weir_discovery::{FollowedSource, News, Readers, Snapshot, Update, run};
use weir_plan::SourceKind;
use weir_stats::Key;

/// How long the first lists are waited for (`docs/spec/serving.md`).
const PATIENCE: Duration = Duration::from_secs(3);

/// The first list of each source.
pub(crate) type FirstLists = BTreeMap<SourceKind, Arc<Snapshot>>;

/// The first list of each of these sources, as far as one comes in time. What is wrong with the others is reported
/// once they are followed.
pub(crate) fn first_lists(sources: &[SourceKind], readers: &Readers, draw: Key) -> io::Result<FirstLists> {
    let mut answers = FirstAnswers::new(sources);
    if sources.is_empty() {
        return Ok(answers.lists);
    }
    let (out, updates) = channel();
    let followed: Vec<FollowedSource> = sources.iter().cloned().map(FollowedSource::from).collect();
    let _discovery = run(&followed, readers, draw, move |news| drop(out.send(news)))?;
    let end = Instant::now() + PATIENCE;
    while !answers.is_whole() {
        let Ok(news) = updates.recv_timeout(end.saturating_duration_since(Instant::now())) else { break };
        answers.take(news);
    }
    Ok(answers.lists)
}

/// What sources have answered so far.
struct FirstAnswers<'a> {
    sources: &'a [SourceKind],
    lists: FirstLists,
    /// Questions that have failed, by source.
    failures: Vec<usize>,
}

impl<'a> FirstAnswers<'a> {
    fn new(sources: &'a [SourceKind]) -> FirstAnswers<'a> {
        FirstAnswers { sources, lists: FirstLists::new(), failures: vec![0; sources.len()] }
    }

    fn take(&mut self, news: News) {
        match news {
            News::Update(Update { source, result: Ok(list) }) => {
                self.lists.extend(self.sources.get(source).map(|kind| (kind.clone(), list)));
            }
            News::Failure(source) => {
                if let Some(count) = self.failures.get_mut(source) {
                    *count += 1;
                }
            }
            // The question of a fault counts by itself.
            News::Update(Update { source, result: Err(_) }) => {
                if let Some(count) = self.failures.get_mut(source) {
                    *count = (*count).max(1);
                }
            }
            News::Unwatched(_) => {}
        }
    }

    /// Whether each source has given a list, or failed.
    fn is_whole(&self) -> bool {
        let mut all = self.sources.iter().zip(&self.failures);
        all.all(|(source, count)| self.lists.contains_key(source) || *count >= attempts(source))
    }
}

/// How many questions fail before a source has failed: each server of Eureka is asked by itself, the next one at once.
fn attempts(source: &SourceKind) -> usize {
    if let SourceKind::Eureka(source) = source { source.urls.len().max(1) } else { 1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_discovery::{Defect, Fault, FaultKind};
    use weir_plan::{ConsulSource, EurekaHost, EurekaSource};

    fn list(source: usize) -> News {
        News::Update(Update { source, result: Ok(Arc::default()) })
    }

    fn fault(source: usize) -> News {
        let (problem, remedy) = (String::new(), String::new());
        let defect = Defect { kind: FaultKind::Unreachable, place: None, problem, remedy };
        let fault = Fault { subject: String::new(), defect, lasting: Duration::ZERO };
        News::Update(Update { source, result: Err(fault) })
    }

    #[test]
    fn the_wait_ends_when_each_source_has_a_list_or_a_fault() {
        let file = SourceKind::File("a.json".to_owned());
        let consul = SourceKind::Consul(ConsulSource::new("http://127.0.0.1:8500", "web"));
        let sources = [file.clone(), consul.clone()];
        let mut answers = FirstAnswers::new(&sources);
        assert!(!answers.is_whole());
        answers.take(News::Failure(1));
        answers.take(fault(1));
        assert!(!answers.is_whole());
        answers.take(list(0));
        assert!(answers.is_whole());
        // One that has failed may still give a list while others are waited for.
        let mut answers = FirstAnswers::new(&sources);
        for news in [fault(0), list(0), list(1), list(7), News::Failure(7)] {
            answers.take(news);
        }
        assert!(answers.is_whole());
        assert_eq!(answers.lists.into_keys().collect::<Vec<_>>(), [file, consul]);
        assert!(FirstAnswers::new(&[]).is_whole());
    }

    #[test]
    fn each_server_of_eureka_is_asked_before_it_has_failed() {
        let eureka = SourceKind::Eureka(EurekaSource {
            urls: vec!["http://a:8761".to_owned(), "http://b:8761".to_owned()],
            app: "SHOP".to_owned(),
            secure: false,
            host: EurekaHost::Ip,
            poll_ns: 30_000_000_000,
            auth: None,
            tls: None,
        });
        let sources = [eureka];
        let mut answers = FirstAnswers::new(&sources);
        answers.take(News::Failure(0));
        answers.take(fault(0));
        assert!(!answers.is_whole());
        answers.take(News::Failure(0));
        assert!(answers.is_whole());
    }

    /// As all answers come through the threads of sources.
    #[test]
    fn a_file_that_is_missing_keeps_no_list_of_another_from_the_start() {
        let path = std::env::temp_dir().join(format!("weir-first-{}.json", std::process::id()));
        std::fs::write(&path, "[\"a:1\"]").expect("a file");
        let (there, gone) = (path.display().to_string(), format!("{}.gone", path.display()));
        let sources = [there.clone(), gone].map(SourceKind::File);
        let lists = first_lists(&sources, &Readers::default(), Key::new(1)).expect("threads");
        drop(std::fs::remove_file(&path));
        assert_eq!(lists.into_keys().collect::<Vec<_>>(), [SourceKind::File(there)]);
    }
}
