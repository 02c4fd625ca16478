//! What is read of a queue whose rows no store has yet: changes from nothing.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::store::{DeadLetter, MessageId, QueueOp, RowOp};

/// The bodies of messages, in the order of `ids`.
pub fn bodies(ops: &[RowOp], ids: &[MessageId]) -> Vec<Option<Bytes>> {
    let body = |wanted: &MessageId| {
        ops.iter().find_map(|op| match op {
            RowOp::Queue(QueueOp::Send { id, body, .. }) if id == wanted => Some(body.clone()),
            _ => None,
        })
    };
    ids.iter().map(body).collect()
}

/// At most `limit` dead messages behind the one of the id `after`, by id.
pub fn dead(ops: &[RowOp], after: MessageId, limit: u32) -> Vec<DeadLetter> {
    let mut letters: BTreeMap<MessageId, (bool, DeadLetter)> = BTreeMap::new();
    for op in ops {
        let RowOp::Queue(op) = op else { continue };
        match op {
            QueueOp::Send { id, name, body, created_at_ms, .. } => {
                let letter = DeadLetter {
                    id: *id,
                    name: name.clone(),
                    created_at_ms: *created_at_ms,
                    deliveries: 0,
                    died_at_ms: 0,
                    error: None,
                    body: body.clone(),
                };
                letters.insert(*id, (false, letter));
            }
            QueueOp::Deliver { id, deliveries, .. } => {
                if let Some((_, letter)) = letters.get_mut(id) {
                    letter.deliveries = *deliveries;
                }
            }
            QueueOp::Release { id, error, .. } => {
                if let (Some((_, letter)), Some(error)) = (letters.get_mut(id), error) {
                    letter.error = Some(error.to_string());
                }
            }
            QueueOp::Bury { id, died_at_ms, error } => {
                if let Some((is_dead, letter)) = letters.get_mut(id) {
                    *is_dead = true;
                    letter.died_at_ms = *died_at_ms;
                    letter.error = error.as_deref().map(str::to_owned).or(letter.error.take());
                }
            }
            QueueOp::Revive { id, .. } => {
                if let Some((is_dead, letter)) = letters.get_mut(id) {
                    (*is_dead, letter.deliveries) = (false, 0);
                }
            }
            QueueOp::Remove(id) | QueueOp::DeleteDead(id) => drop(letters.remove(id)),
            QueueOp::Clear => letters.retain(|_, (is_dead, _)| *is_dead),
            QueueOp::RememberKey(_) | QueueOp::ForgetKey { .. } => {}
        }
    }
    let dead = letters.into_values().filter(|(is_dead, _)| *is_dead).map(|(_, letter)| letter);
    dead.filter(|letter| letter.id > after).take(limit as usize).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letter(id: i64, deliveries: u32, error: &str) -> DeadLetter {
        DeadLetter {
            id: MessageId(id),
            name: "a".into(),
            created_at_ms: 5,
            deliveries,
            died_at_ms: 9,
            error: Some(error.into()),
            body: Bytes::from_static(b"body"),
        }
    }

    #[test]
    fn the_dead_are_those_that_were_given_up_and_neither_revived_nor_deleted() {
        let send = |id| QueueOp::Send {
            id: MessageId(id),
            name: "a".into(),
            body: Bytes::from_static(b"body"),
            created_at_ms: 5,
            available_at_ms: 5,
        };
        let bury = |id, error: Option<&str>| {
            let error = error.map(Into::into);
            QueueOp::Bury { id: MessageId(id), died_at_ms: 9, error }
        };
        let id = MessageId(1);
        let mut ops: Vec<_> = (1..=5).map(send).collect();
        ops.extend([
            QueueOp::Deliver { id, deliveries: 2, available_at_ms: 5 },
            QueueOp::Release { id, available_at_ms: 5, error: Some("late".into()) },
            bury(1, None),
            bury(2, Some("bad")),
            bury(3, None),
            bury(4, None),
            QueueOp::Revive { id: MessageId(3), available_at_ms: 6 },
            QueueOp::DeleteDead(MessageId(4)),
            QueueOp::Clear,
        ]);
        let ops: Vec<_> = ops.into_iter().map(RowOp::Queue).collect();

        assert_eq!(dead(&ops, MessageId(0), 9), [letter(1, 2, "late"), letter(2, 0, "bad")]);
        assert_eq!(dead(&ops, MessageId(0), 1), [letter(1, 2, "late")]);
        assert_eq!(dead(&ops, MessageId(1), 9), [letter(2, 0, "bad")]);
    }
}
