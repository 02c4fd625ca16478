//! A message of a client on its way to the author's side: a call whose arguments are the
//! queue, the body, and how it is sent.

use bytes::Bytes;

use super::cbor::{self, Item};
use super::http::{QueueSendRequest, SendPolicy};
use super::{Payload, ProtocolError};

/// What such a call brings along.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendCall {
    /// The name of the queue.
    pub queue: String,
    /// What is sent.
    pub body: Payload,
    /// Whether its sender waits until it is completed.
    pub wait: bool,
    /// For how long, in milliseconds; `None` for no limit.
    pub timeout_ms: Option<u64>,
    /// How it is kept.
    pub policy: SendPolicy,
}

impl QueueSendRequest {
    /// The arguments of the call by which it travels on within this process: the name of
    /// the queue, the body, and how, `timeoutMs` being -1 without a limit.
    ///
    /// # Errors
    ///
    /// [`ProtocolError::TooDeep`] of a body that is nested as deeply as it may be.
    pub fn as_call(&self, queue: &str) -> Result<Payload, ProtocolError> {
        let mut out = cbor::Writer::with_capacity(self.body.cbor().len() + queue.len() + 32);
        out.array(3).text(queue).raw(self.body.cbor());
        let SendPolicy { dedupe_key, delay_ms } = &self.policy;
        out.map(2 + usize::from(dedupe_key.is_some()) + usize::from(delay_ms.is_some()));
        out.text("wait").flag(self.wait.unwrap_or(false)).text("timeoutMs");
        match self.timeout_ms {
            Some(timeout) => out.whole(timeout),
            None => out.number(-1.0),
        };
        if let Some(key) = dedupe_key {
            out.text("dedupeKey").text(key);
        }
        if let Some(delay) = *delay_ms {
            out.text("delayMs").whole(delay);
        }
        Payload::new(out.into_bytes().into())
    }
}

impl SendCall {
    /// Reads what [`QueueSendRequest::as_call`] wrote.
    ///
    /// # Errors
    ///
    /// [`ProtocolError::NotCbor`] and [`ProtocolError::Field`] of anything else.
    pub fn read(args: Bytes) -> Result<Self, ProtocolError> {
        let [queue, body, policy] = Item::message(args)?.items(["queue", "body", "policy"])?;
        let [wait, timeout, dedupe_key, delay] =
            policy.fields(["wait", "timeoutMs", "dedupeKey", "delayMs"])?;
        let timeout = timeout.required()?;
        Ok(Self {
            queue: queue.text()?,
            body: body.payload()?,
            wait: wait.required()?.flag()?,
            timeout_ms: if timeout.is_negative()? { None } else { Some(timeout.milliseconds()?) },
            policy: SendPolicy {
                dedupe_key: dedupe_key.optional().map(|key| key.text()).transpose()?,
                delay_ms: delay.optional().map(|delay| delay.milliseconds()).transpose()?,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(wait: Option<bool>, timeout_ms: Option<u64>) -> QueueSendRequest {
        let body = Payload::from_json(b"{\"to\":[1,2]}").unwrap();
        let policy = SendPolicy { dedupe_key: Some("a".to_owned()), delay_ms: Some(5) };
        QueueSendRequest { body, name: None, wait, timeout_ms, policy }
    }

    #[test]
    fn what_a_client_sends_arrives_with_its_body_as_it_was() {
        for (wait, timeout_ms) in
            [(None, None), (Some(true), Some(0)), (Some(false), Some(1 << 40))]
        {
            let sent = request(wait, timeout_ms);

            let call = SendCall::read(sent.as_call("jobs").unwrap().cbor().clone()).unwrap();

            assert_eq!(call.queue, "jobs");
            assert_eq!(call.body, sent.body);
            assert_eq!((call.wait, call.timeout_ms), (wait.unwrap_or(false), timeout_ms));
            assert_eq!(call.policy, sent.policy);
        }
    }

    #[test]
    fn what_is_no_such_call_is_refused() {
        let whole = request(None, None).as_call("jobs").unwrap().cbor().clone();
        for end in 0..whole.len() {
            assert!(SendCall::read(whole.slice(..end)).is_err(), "{end} bytes");
        }
        for other in ["[]", "[\"jobs\",1]", "[\"jobs\",1,{}]", "[\"jobs\",1,{},2]", "{}"] {
            let other = Payload::from_json(other.as_bytes()).unwrap();

            assert!(SendCall::read(other.cbor().clone()).is_err(), "{other:?}");
        }
    }
}
