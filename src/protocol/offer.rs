//! What an upgrade offers: the list in `sec-websocket-protocol` (§3.1).
//!
//! Clients put there what would otherwise have to stand in the URL, where secrets end up
//! in logs. A server answers with [`Offer::selected`].

use std::fmt;

use super::{Encoding, Payload, ProtocolError, form_decode};

/// The tokens of an upgrade that mean something. The first of a kind counts.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Offer {
    /// Whether anything is offered at all.
    pub given: bool,
    /// The name of the encoding.
    pub encoding: Option<String>,
    /// The parameters of the connection, still encoded.
    pub params: Option<String>,
    /// What to route to; `actor` is the only target that exists.
    pub target: Option<String>,
    /// The id of the actor to route to.
    pub actor: Option<String>,
    /// What the client authenticates with at the gateway.
    pub token: Option<String>,
    /// What the client authenticates with at the inspector.
    pub inspector_token: Option<String>,
    /// Whether the actor gets the socket before it is ready.
    pub skip_ready_wait: bool,
}

impl Offer {
    /// The header with the offer, and with the answer to it.
    pub const HEADER: &str = "sec-websocket-protocol";

    /// What the server answers: published clients drop the socket unless they read it, and
    /// a client that offers nothing drops it if it does.
    pub fn selected(&self) -> Option<&'static str> {
        self.given.then_some("rivet")
    }

    /// Reads the values of the header. Tokens that nobody knows are skipped.
    pub fn parse<'a>(headers: impl IntoIterator<Item = &'a str>) -> Self {
        let mut offer = Self::default();
        for token in headers.into_iter().flat_map(|header| header.split(',')).map(str::trim) {
            offer.given |= !token.is_empty();
            if token == "rivet_skip_ready_wait" {
                offer.skip_ready_wait = true;
            }
            if let Some((name, value)) = token.split_once('.')
                && let Some(field) = offer.field(name)
            {
                field.get_or_insert_with(|| value.to_owned());
            }
        }
        offer
    }

    /// The encoding of the frames.
    ///
    /// # Errors
    ///
    /// [`ProtocolError::UnsupportedEncoding`].
    pub fn encoding(&self) -> Result<Encoding, ProtocolError> {
        Encoding::of_offer(self.encoding.as_deref())
    }

    /// The parameters of the connection; `null` if there are none.
    ///
    /// # Errors
    ///
    /// [`ProtocolError::NotPercentEncoded`], and those of [`Payload::from_json`].
    pub fn params(&self) -> Result<Payload, ProtocolError> {
        match &self.params {
            Some(text) => Payload::from_json(form_decode(text)?.as_bytes()),
            None => Ok(Payload::null()),
        }
    }

    fn field(&mut self, name: &str) -> Option<&mut Option<String>> {
        Some(match name {
            "rivet_encoding" => &mut self.encoding,
            "rivet_conn_params" => &mut self.params,
            "rivet_target" => &mut self.target,
            "rivet_actor" => &mut self.actor,
            "rivet_token" => &mut self.token,
            "rivet_inspector_token" => &mut self.inspector_token,
            _ => return None,
        })
    }
}

/// Without the secrets.
impl fmt::Debug for Offer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Offer")
            .field("encoding", &self.encoding)
            .field("target", &self.target)
            .field("actor", &self.actor)
            .field("skip_ready_wait", &self.skip_ready_wait)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// §3.1.
    #[test]
    fn an_offer_is_read_from_one_header_or_several() {
        let list = "rivet, rivet_encoding.bare,rivet_conn_params.%7B%22a%22%3A%22x+y.z%22%7D";
        let more = "rivet_target.actor, rivet_actor.id.1, rivet_token.t.k, rivet_skip_ready_wait";

        let offer = Offer::parse([list, more, "rivet_inspector_token.i, rivet_test_ack_hook.9"]);

        assert_eq!(offer.encoding(), Ok(Encoding::Bare));
        assert_eq!(offer.params().unwrap().cbor(), &b"\xa1\x61a\x65x y.z"[..]);
        assert_eq!(offer.target.as_deref(), Some("actor"));
        assert_eq!(offer.actor.as_deref(), Some("id.1"));
        assert_eq!(offer.token.as_deref(), Some("t.k"));
        assert_eq!(offer.inspector_token.as_deref(), Some("i"));
        assert!(offer.skip_ready_wait);
    }

    #[test]
    fn tokens_that_nobody_knows_mean_json_and_no_parameters() {
        let offer = Offer::parse(["", "rivet,chat"]);

        assert_eq!(offer, Offer { given: true, ..Offer::default() });
        assert_eq!(offer.encoding(), Ok(Encoding::Json));
        assert_eq!(offer.params(), Ok(Payload::null()));
    }

    /// §3.1, and RFC 6455 for a client that offers nothing.
    #[test]
    fn the_answer_is_rivet_unless_nothing_is_offered() {
        assert_eq!(Offer::parse(["rivet, rivet_encoding.bare"]).selected(), Some("rivet"));
        assert_eq!(Offer::parse(["chat"]).selected(), Some("rivet"));
        assert_eq!(Offer::parse([" , "]).selected(), None);
        assert_eq!(Offer::parse([]).selected(), None);
    }

    #[test]
    fn the_first_of_a_kind_counts() {
        let offer = Offer::parse(["rivet_encoding.cbor,rivet_encoding.bare"]);

        assert_eq!(offer.encoding(), Ok(Encoding::Cbor));
    }

    #[test]
    fn an_encoding_and_parameters_that_cannot_be_read_are_refused() {
        let offer = Offer::parse(["rivet_encoding.xml,rivet_conn_params.%7B"]);

        assert_eq!(
            offer.encoding(),
            Err(ProtocolError::UnsupportedEncoding { name: "xml".into() })
        );
        assert!(matches!(offer.params(), Err(ProtocolError::NotJson { .. })));
        let offer = Offer::parse(["rivet_conn_params.%zz"]);
        assert!(matches!(offer.params(), Err(ProtocolError::NotPercentEncoded { .. })));
    }

    #[test]
    fn secrets_are_not_printed() {
        let text = "rivet_conn_params.secret,rivet_token.secret,rivet_inspector_token.secret";

        assert!(!format!("{:?}", Offer::parse([text])).contains("secret"));
    }
}
