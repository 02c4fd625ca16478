//! What the log says of crashes.

use std::fmt::Debug;
use std::sync::OnceLock;

use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::place::{Place, get};

/// Keeps the lines of the whole process that report a crash.
struct Crashes;

static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

#[derive(Default)]
struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.push_str(&format!("{}={value:?} ", field.name()));
    }
}

impl Subscriber for Crashes {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        if line.0.contains("an actor crashed") {
            LINES.lock().push(line.0);
        }
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The crashes reported with this message.
fn reported(message: &str) -> usize {
    LINES.lock().iter().filter(|line| line.contains(message)).count()
}

fn listen() {
    static LISTENING: OnceLock<()> = OnceLock::new();
    LISTENING.get_or_init(|| {
        tracing::subscriber::set_global_default(Crashes).expect("nobody else listens");
    });
}

#[tokio::test]
async fn a_crash_is_logged_once_puts_the_actor_to_sleep_and_the_next_call_wakes_it() {
    listen();
    let place = Place::new().await;
    place.running("a").await;
    place.script.hold("on_sleep");

    place.call(get("a"), "crash", "it blew up").await.unwrap();
    place.until(|| place.script.waiting("on_sleep") == 1).await;
    place.call(get("a"), "crash", "it blew up again").await.unwrap();
    place.script.release("on_sleep");
    place.until(|| place.script.alive() == 0).await;

    assert_eq!(reported("it blew up"), 1);
    assert_eq!(place.script.count("on_destroy"), 0);
    place.call(get("a"), "crash", "it blew up next time").await.unwrap();
    place.until(|| place.script.alive() == 0).await;
    assert_eq!(reported("it blew up next time"), 1);
    assert_eq!(place.script.contexts().len(), 2);
}
