//! The two questions to the API server: all EndpointSlices of a service, page by page, and their changes
//! since then.

use super::super::http::{Answer, Client, LIST_TIME, Lines};
use super::super::small_file::FileReader;
use super::access::{Access, with_origin};
use super::slices::{Slices, too_large};
use crate::fault::{Defect, FaultKind};
use crate::list::MOST_BYTES;
use hyper::StatusCode;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use tokio::time::timeout;
use weir_plan::KubernetesSource;
use weir_plan::http::short;

/// The most slices of a page: 50,000 endpoints, as Kubernetes fills them.
const PAGE: u32 = 500;

/// What is not escaped in a path or a query.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// An API server and what it is asked for.
#[derive(Debug)]
pub(super) struct Api {
    client: Client,
    /// Its URL, for reports.
    url: String,
    namespace: String,
    /// The path and the part of the query that all questions have.
    path: String,
    /// What says how it is asked, for reports.
    origin: String,
}

impl Api {
    pub(super) fn new(access: Access, source: &KubernetesSource, files: &FileReader) -> Api {
        let namespace = source.namespace.clone().unwrap_or(access.namespace);
        let path = format!(
            "/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices\
             ?labelSelector=kubernetes.io/service-name%3D{}",
            escape(&namespace),
            escape(&source.service)
        );
        let client = Client::new(access.endpoint, access.trust, access.credentials, files.clone());
        Api { client, url: access.url, namespace, path, origin: access.origin }
    }

    /// All slices, and the version of the list.
    ///
    /// # Errors
    /// There is no whole list within its limits.
    pub(super) async fn list(&mut self) -> Result<(Slices, String), Defect> {
        let list = timeout(LIST_TIME, self.list_pages()).await;
        let list = list.unwrap_or_else(|_| {
            let problem = format!("{} gave no whole list within {}s", self.url, LIST_TIME.as_secs());
            Err(Defect::new(FaultKind::Late, problem, "see to the API server and to the way there"))
        });
        list.map_err(|defect| self.trace(defect))
    }

    async fn list_pages(&mut self) -> Result<(Slices, String), Defect> {
        let mut slices = Slices::default();
        let mut next: Option<String> = None;
        let mut bytes = 0;
        let mut may_restart = true;
        loop {
            let mut path = format!("{}&limit={PAGE}", self.path);
            if let Some(next) = &next {
                path.push_str(&format!("&continue={}", escape(next)));
            }
            let answer = self.client.get(&path, LIST_TIME).await?;
            bytes += answer.body.len() as u64;
            if bytes > MOST_BYTES {
                return Err(too_large());
            }
            if answer.status == StatusCode::GONE && next.is_some() && may_restart {
                // The server has forgotten the version of the first page meanwhile.
                (slices, next, may_restart) = (Slices::default(), None, false);
                continue;
            }
            if answer.status != StatusCode::OK {
                return Err(self.refusal(&answer));
            }
            let end = slices.add_page(answer.json()?)?;
            if end.next.is_none() {
                return Ok((slices, end.version));
            }
            next = end.next;
        }
    }

    /// The changes since this version, for this many seconds; or why there are none.
    ///
    /// # Errors
    /// The server cannot be asked.
    pub(super) async fn watch(
        &mut self,
        version: &str,
        seconds: u64,
    ) -> Result<Result<Lines, Defect>, Defect> {
        let path = format!(
            "{}&watch=1&resourceVersion={}&allowWatchBookmarks=true&timeoutSeconds={seconds}",
            self.path,
            escape(version)
        );
        let answer = self.client.watch(&path, LIST_TIME).await;
        let answer = answer.map_err(|defect| self.trace(defect))?;
        Ok(answer.map_err(|answer| self.trace(self.refusal(&answer))))
    }

    /// A defect with what says how the server is asked: a wrong context may lead to any server. A list that is too long has
    /// come from the right one.
    fn trace(&self, defect: Defect) -> Defect {
        match defect.kind {
            FaultKind::TooLarge | FaultKind::TooMany => defect,
            _ => with_origin(defect, &self.origin),
        }
    }

    /// What another status than 200 means.
    fn refusal(&self, answer: &Answer) -> Defect {
        if answer.status != StatusCode::FORBIDDEN {
            return answer.refusal();
        }
        let namespace = short(&self.namespace);
        let problem = format!(
            "{} does not let weir list and watch EndpointSlices in the namespace \"{namespace}\"",
            self.url
        );
        let remedy = format!(
            "bind a Role in \"{namespace}\" to its user with the rule apiGroups: [\"discovery.k8s.io\"], \
             resources: [\"endpointslices\"], verbs: [\"get\", \"list\", \"watch\"]"
        );
        Defect::new(FaultKind::Forbidden, problem, remedy)
    }
}

fn escape(text: &str) -> String {
    utf8_percent_encode(text, PLAIN).to_string()
}
