//! What Rust has to say, as jobs for the environments that asked for it.
//!
//! Off until JavaScript sets a level; nothing is ever written to standard output
//! or error. The process has one subscriber, installed with the first level.
//!
//! # Invariants
//!
//! 1. The level of the process is the most talkative of its environments.
//! 2. An environment that asks for nothing costs one comparison per line.

use std::fmt::Write as _;
use std::sync::{Arc, Once, Weak};

use parking_lot::Mutex;
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::subscriber::Interest;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

use super::hub::Hub;
use super::job::{Job, LogLine};

static INSTALLED: Once = Once::new();
static SINKS: Mutex<Vec<Sink>> = Mutex::new(Vec::new());

struct Sink {
    hub: Weak<Hub>,
    level: LevelFilter,
}

/// Sends lines of `level` and above to an environment; `OFF` ends it.
pub(super) fn set_level(hub: &Arc<Hub>, level: LevelFilter) {
    {
        let mut sinks = SINKS.lock();
        sinks.retain(|sink| {
            sink.hub.upgrade().is_some_and(|live| live.environment() != hub.environment())
        });
        if level != LevelFilter::OFF {
            sinks.push(Sink { hub: Arc::downgrade(hub), level });
        }
    }
    if level != LevelFilter::OFF {
        INSTALLED.call_once(|| {
            let subscriber = tracing_subscriber::registry().with(ToJavaScript);
            if tracing::subscriber::set_global_default(subscriber).is_err() {
                // Another subscriber of this process is in charge; it stays so.
            }
        });
    }
    tracing::callsite::rebuild_interest_cache();
}

/// Reads a level: `trace`, `debug`, `info`, `warn`, `error`; anything else is `None`.
pub(super) fn parse_level(text: &str) -> Option<LevelFilter> {
    match text {
        "trace" => Some(LevelFilter::TRACE),
        "debug" => Some(LevelFilter::DEBUG),
        "info" => Some(LevelFilter::INFO),
        "warn" => Some(LevelFilter::WARN),
        "error" => Some(LevelFilter::ERROR),
        _ => None,
    }
}

fn most_talkative() -> LevelFilter {
    SINKS.lock().iter().map(|sink| sink.level).max().unwrap_or(LevelFilter::OFF)
}

/// Turns events into [`Job::Log`].
struct ToJavaScript;

impl<S: Subscriber> Layer<S> for ToJavaScript {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if is_ours(metadata) { Interest::sometimes() } else { Interest::never() }
    }

    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        is_ours(metadata) && *metadata.level() <= most_talkative()
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(most_talkative())
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let level = *event.metadata().level();
        let hubs: Vec<Arc<Hub>> = SINKS
            .lock()
            .iter()
            .filter(|sink| level <= sink.level)
            .filter_map(|sink| sink.hub.upgrade())
            .collect();
        if hubs.is_empty() {
            return;
        }
        let mut fields = Fields::default();
        event.record(&mut fields);
        let target = event.metadata().target();
        let json = Value::Object(fields.named).to_string();
        for hub in hubs {
            hub.push_log(|lost| {
                Job::Log(Box::new(LogLine {
                    level: label(level),
                    target: target.to_owned(),
                    message: fields.message.clone(),
                    fields: json.clone(),
                    lost,
                }))
            });
        }
    }
}

fn is_ours(metadata: &Metadata<'_>) -> bool {
    metadata.target().starts_with("greenroom")
}

fn label(level: Level) -> &'static str {
    match level {
        Level::TRACE => "trace",
        Level::DEBUG => "debug",
        Level::INFO => "info",
        Level::WARN => "warn",
        Level::ERROR => "error",
    }
}

#[derive(Default)]
struct Fields {
    message: String,
    named: Map<String, Value>,
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "message" {
            // Writing to a string never fails.
            let _ = write!(self.message, "{value:?}");
        } else {
            self.named.insert(field.name().to_owned(), Value::String(format!("{value:?}")));
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            self.message.push_str(value);
        } else {
            self.named.insert(field.name().to_owned(), Value::String(value.to_owned()));
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.named.insert(field.name().to_owned(), value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.named.insert(field.name().to_owned(), value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.named.insert(field.name().to_owned(), value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.named.insert(field.name().to_owned(), value.into());
    }
}
