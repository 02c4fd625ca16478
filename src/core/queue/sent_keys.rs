//! The keys under which messages were sent, so that a second send is the first.
//!
//! # Invariants
//!
//! 1. A key is known while its message waits, and for [`REMEMBERED_FOR`] after it was
//!    sent. Of keys whose messages no longer wait the last [`REMEMBERED`] are known.
//! 2. `gone` holds exactly those known keys whose messages no longer wait.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::store::{MessageId, QueueOp, SentKeyRow};
use crate::time::Duration;

/// How long a key is remembered after it was sent: a day.
pub const REMEMBERED_FOR: Duration = Duration::from_secs(24 * 60 * 60);
/// How many keys are remembered whose messages no longer wait.
pub const REMEMBERED: usize = 10_000;
/// The longest key, in bytes of UTF-8.
pub const MAX_KEY_LEN: usize = 128;

/// A key belongs to the name of its message.
pub(super) type SentKey = (Arc<str>, Arc<str>);

/// The keys that are known.
#[derive(Clone, Debug, Default)]
pub(super) struct SentKeys {
    known: HashMap<SentKey, Sent>,
    gone: BTreeSet<(i64, MessageId, SentKey)>,
}

/// The message that was sent under a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) id: MessageId,
    pub(super) at_ms: i64,
}

impl SentKeys {
    /// Takes in what is stored; `waits` says whether the message does.
    pub(super) fn load(rows: Vec<SentKeyRow>, waits: impl Fn(MessageId) -> bool) -> Self {
        let mut keys = Self::default();
        for SentKeyRow { name, key, id, sent_at_ms } in rows {
            keys.known.insert((name.clone(), key.clone()), Sent { id, at_ms: sent_at_ms });
            if !waits(id) {
                keys.gone.insert((sent_at_ms, id, (name, key)));
            }
        }
        keys
    }

    /// The message that was sent under a key that is known at `now`.
    pub(super) fn find(&self, key: &SentKey, now: i64) -> Option<Sent> {
        let sent = *self.known.get(key)?;
        let is_gone = self.gone.contains(&(sent.at_ms, sent.id, key.clone()));
        (!is_gone || !is_over(sent.at_ms, now)).then_some(sent)
    }

    /// Notes a message that is sent under a key that is not known.
    pub(super) fn remember(&mut self, key: SentKey, sent: Sent) -> QueueOp {
        if let Some(old) = self.known.insert(key.clone(), sent) {
            self.gone.remove(&(old.at_ms, old.id, key.clone()));
        }
        let (name, key) = key;
        QueueOp::RememberKey(SentKeyRow { name, key, id: sent.id, sent_at_ms: sent.at_ms })
    }

    /// Notes that the message of this key no longer waits.
    pub(super) fn is_gone(&mut self, key: SentKey) {
        if let Some(sent) = self.known.get(&key) {
            self.gone.insert((sent.at_ms, sent.id, key));
        }
    }

    /// Notes that the message of this key waits again. `None` when the key stands for
    /// another one by now, or for none.
    pub(super) fn returns(&mut self, id: MessageId) -> Option<Arc<str>> {
        let found = self.gone.iter().find(|(_, gone, _)| *gone == id).cloned()?;
        self.gone.remove(&found);
        Some(found.2.1)
    }

    /// Forgets what invariant 1 does not keep.
    pub(super) fn forget(&mut self, now: i64) -> Vec<QueueOp> {
        let mut forgotten = Vec::new();
        while let Some((at_ms, _, _)) = self.gone.first()
            && (is_over(*at_ms, now) || self.gone.len() > REMEMBERED)
            && let Some((_, _, key)) = self.gone.pop_first()
        {
            self.known.remove(&key);
            let (name, key) = key;
            forgotten.push(QueueOp::ForgetKey { name, key });
        }
        forgotten
    }
}

fn is_over(sent_at_ms: i64, now: i64) -> bool {
    let for_ms = i64::try_from(REMEMBERED_FOR.as_millis()).expect("a day");
    now.saturating_sub(sent_at_ms) >= for_ms
}
