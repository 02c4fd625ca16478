//! How a socket ends: a code and a reason that clients take apart (§3.7, §6.6).

use crate::error::Error;

/// The longest reason of a close frame, in bytes.
const MAX_REASON: usize = 123;

/// The end of a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Close {
    /// The code, as RFC 6455 has them.
    pub code: u16,
    /// The reason, at most 123 bytes: `group.code`, with `#` and the id of the request if
    /// it is known.
    pub reason: String,
}

impl Close {
    /// Nothing went wrong.
    pub const NORMAL: u16 = 1000;
    /// This side goes away.
    pub const AWAY: u16 = 1001;
    /// The peer speaks wrongly.
    pub const PROTOCOL: u16 = 1002;
    /// Nobody speaks what the peer asks for.
    pub const UNSUPPORTED: u16 = 1003;
    /// A text is none.
    pub const INVALID_TEXT: u16 = 1007;
    /// The peer may not do that.
    pub const POLICY: u16 = 1008;
    /// Something went wrong here.
    pub const INTERNAL: u16 = 1011;

    /// An end that somebody here wants, for a reason of theirs. What is longer than a
    /// reason may be is cut off.
    pub fn normal(reason: &str) -> Self {
        Self { code: Self::NORMAL, reason: shortened(reason).to_owned() }
    }

    /// The end of a socket by an error. The reason is the same for frames and for raw
    /// sockets; a connection whose parameters cannot be read is no exception (§3.1 has
    /// `Server Error` there, which no client can take apart).
    pub fn failed(error: &Error) -> Self {
        let code = match (&*error.group, &*error.code) {
            // Nothing failed for the client: its socket is merely not known any more.
            ("ws", "meta_not_found_during_restore" | "stale_metadata") => Self::NORMAL,
            ("inspector", "invalid_protocol_version") => Self::PROTOCOL,
            ("actor", "unsupported_websocket_encoding") => Self::UNSUPPORTED,
            ("message", "invalid_utf8") => Self::INVALID_TEXT,
            ("connection", "too_slow")
            | ("guard", "rate_limit" | "too_many_connections")
            | ("inspector", "unauthorized")
            | ("ws", "message_index_skip") => Self::POLICY,
            _ => Self::INTERNAL,
        };
        let fault = format!("{}.{}", error.group, error.code);
        // Half an id would be that of another request, so it goes as a whole.
        let reason = error
            .ray_id
            .as_ref()
            .map(|ray| format!("{fault}#{ray}"))
            .filter(|reason| reason.len() <= MAX_REASON)
            .unwrap_or_else(|| shortened(&fault).to_owned());
        Self { code, reason }
    }
}

fn shortened(reason: &str) -> &str {
    let end = (0..=MAX_REASON.min(reason.len()))
        .rev()
        .find(|end| reason.is_char_boundary(*end))
        .unwrap_or_default();
    &reason[..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorCode;

    fn failed(group: &'static str, code: &'static str, ray: Option<&str>) -> Close {
        let mut error = Error::new(ErrorCode::new(group, code), "m");
        error.ray_id = ray.map(str::to_owned);
        Close::failed(&error)
    }

    /// §3.7 and §6.6.
    #[test]
    fn a_close_by_an_error_names_the_fault_and_the_request() {
        assert_eq!(
            failed("actor", "not_found", Some("ray1")),
            Close { code: 1011, reason: "actor.not_found#ray1".into() }
        );
        assert_eq!(
            failed("actor", "invalid_request", None),
            Close { code: 1011, reason: "actor.invalid_request".into() }
        );
    }

    /// The codes of §2.3, §2.4, §3.1, §3.7, §5.1, §6.6 and §8.3.
    #[test]
    fn every_fault_has_the_code_that_clients_know() {
        let cases = [
            ("ws", "meta_not_found_during_restore", 1000),
            ("ws", "stale_metadata", 1000),
            ("ws", "restore_error", 1011),
            ("ws", "message_index_skip", 1008),
            ("connection", "restore_not_found", 1011),
            ("actor", "hibernation_persist_failed", 1011),
            ("actor", "unsupported_websocket_encoding", 1003),
            ("actor", "invalid_request", 1011),
            ("actor", "callback_timed_out", 1011),
            ("actor", "init_error", 1011),
            ("actor", "send_failed", 1011),
            ("actor", "not_found", 1011),
            ("auth", "forbidden", 1011),
            ("user", "anything", 1011),
            ("message", "incoming_too_long", 1011),
            ("message", "outgoing_too_long", 1011),
            ("message", "invalid_utf8", 1007),
            ("guard", "missing_header", 1011),
            ("guard", "rate_limit", 1008),
            ("guard", "too_many_connections", 1008),
            ("connection", "too_slow", 1008),
            ("inspector", "invalid_protocol_version", 1002),
            ("inspector", "unauthorized", 1008),
            ("inspector", "init_error", 1011),
            ("inspector", "runtime_missing", 1011),
        ];

        for (group, code, expected) in cases {
            let close = failed(group, code, None);
            assert_eq!(close, Close { code: expected, reason: format!("{group}.{code}") });
        }
    }

    #[test]
    fn a_reason_has_no_more_than_123_bytes_and_ends_with_a_whole_character() {
        assert_eq!(Close::normal(&"a".repeat(200)).reason, "a".repeat(123));
        assert_eq!(Close::normal(&"ä".repeat(100)).reason, "ä".repeat(61));
        assert_eq!(Close::normal("bye"), Close { code: 1000, reason: "bye".into() });
    }

    #[test]
    fn an_id_that_does_not_fit_is_left_out() {
        let fits = "r".repeat(123 - "actor.not_found#".len());
        let close = failed("actor", "not_found", Some(&fits));
        assert_eq!(close.reason.len(), 123);

        let close = failed("actor", "not_found", Some(&format!("{fits}r")));
        assert_eq!(close.reason, "actor.not_found");
    }
}
