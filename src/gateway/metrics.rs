//! What is counted, for Prometheus: that of the actors, of the store and of the gateway itself.
//!
//! Numbers of one moment are read when they are asked for, so nothing counts twice.

use std::fmt::{Display, Write as _};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use bytes::Bytes;

use super::Shared;
use super::answer::{Answer, body};
use crate::metrics::Metrics;

/// Why writing cannot fail.
const ANY_TEXT: &str = "a string takes any text";

/// Text that grows by one metric at a time.
struct Page(String);

impl Page {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}").expect(ANY_TEXT);
    }

    fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.head(name, "gauge", help);
        writeln!(self.0, "{name} {value}").expect(ANY_TEXT);
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.head(name, "counter", help);
        writeln!(self.0, "{name} {value}").expect(ANY_TEXT);
    }
}

/// Answers with all of it, in Prometheus' text format.
pub(super) async fn metrics(State(shared): State<Arc<Shared>>) -> Answer {
    Ok(answer(&shared))
}

/// The same for whoever asks for it otherwise.
pub(super) fn answer(shared: &Shared) -> Response {
    body(StatusCode::OK, Metrics::CONTENT_TYPE, Bytes::from(text(shared)))
}

/// All of it, in Prometheus' text format.
pub(super) fn text(shared: &Shared) -> String {
    let host = &shared.host;
    let mut page = Page(host.runtime().metrics().encode());
    page.head("greenroom_actors", "gauge", "Actors that do not sleep, by state");
    for (state, count) in host.busy_by_state() {
        writeln!(page.0, "greenroom_actors{{state=\"{state}\"}} {count}").expect(ANY_TEXT);
    }
    let bounds = &shared.options.bounds;
    let sessions = host.session_count();
    let sockets = bounds.sockets - shared.sockets.available_permits();
    page.gauge("greenroom_sessions", "Clients whose connections outlive sleeps", sessions);
    page.gauge("greenroom_gateway_sockets", "WebSockets that are open", sockets);
    let calls = shared.calls.load(Ordering::Relaxed);
    page.gauge("greenroom_gateway_calls", "Calls over sockets that are not answered", calls);
    let store = host.store_stats();
    page.counter("greenroom_store_commits_total", "Commits that succeeded", store.commits);
    page.counter("greenroom_store_writes_total", "Writes that these commits held", store.batches);
    page.gauge("greenroom_store_largest_commit", "Writes of the largest", store.largest_group);
    page.gauge("greenroom_store_wal_frames", "Frames in the write-ahead log", store.wal_frames);
    page.counter("greenroom_store_checkpoints_total", "Checkpoints", store.checkpoints);
    let replays = "Commits that were tried again write by write";
    page.counter("greenroom_store_replays_total", replays, store.replays);
    page.counter("greenroom_store_full_total", "Times that there was no room", store.full);
    let fail_stops = "Times that the outcome of a commit was unknown";
    page.counter("greenroom_store_fail_stops_total", fail_stops, store.fail_stops);
    page.0
}
