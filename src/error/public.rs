//! Which faults every client may know of.

use super::Error;

impl Error {
    /// Whether clients may read its message and its metadata.
    pub fn is_public(&self) -> bool {
        self.public == Some(true) || public_status(&self.group, &self.code).is_some()
    }
}

/// The HTTP status of a fault that every client may know of; `None` of any other.
pub fn public_status(group: &str, code: &str) -> Option<u16> {
    let status = match (group, code) {
        ("auth", "forbidden") => 403,
        ("actor", "not_found" | "action_not_found") => 404,
        ("actor", "method_not_allowed") => 405,
        ("actor", "action_timed_out") => 408,
        ("actor", "aborted")
        | (
            "actor_runtime_socket",
            "unsupported" | "not_enabled" | "closed" | "database_unavailable",
        )
        | ("message", "incoming_too_long" | "outgoing_too_long")
        | ("schedule" | "kv" | "user", _)
        | (
            "queue",
            "full"
            | "message_too_large"
            | "message_invalid"
            | "invalid_payload"
            | "invalid_completion_payload"
            | "already_completed"
            | "previous_message_not_completed"
            | "complete_not_configured"
            | "timed_out",
        ) => 400,
        _ => return None,
    };
    Some(status)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorCode;

    #[test]
    fn every_fault_of_schedule_kv_and_user_is_public_and_of_queue_only_the_listed() {
        assert_eq!(public_status("schedule", "anything"), Some(400));
        assert_eq!(public_status("user", "my_code"), Some(400));
        assert_eq!(public_status("queue", "full"), Some(400));
        assert_eq!(public_status("queue", "message_identity_mismatch"), None);
    }

    #[test]
    fn what_its_thrower_calls_public_is_public() {
        let mut error = Error::new(ErrorCode::new("app", "mine"), "m");
        assert!(!error.is_public());

        error.public = Some(true);

        assert!(error.is_public());
    }
}
