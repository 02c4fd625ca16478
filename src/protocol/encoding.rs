//! The three forms of a message, and how a client asks for one (§3.1, §4.2).

use super::ProtocolError;
use super::error::shown;

/// The form of the messages of one connection, or of one HTTP call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// Text frames.
    #[default]
    Json,
    /// Binary frames, the shape of JSON.
    Cbor,
    /// Binary frames with a version in front.
    Bare,
}

impl Encoding {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Json, Self::Cbor, Self::Bare];

    /// Its name in headers and offers.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Cbor => "cbor",
            Self::Bare => "bare",
        }
    }

    /// The encoding of a name; `None` of an unknown one.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|encoding| encoding.name() == name)
    }

    /// What the header `x-rivet-encoding` asks for: JSON when it is missing or unknown.
    pub fn of_header(value: Option<&str>) -> Self {
        value.and_then(Self::named).unwrap_or_default()
    }

    /// What an upgrade asks for: JSON when it names none.
    ///
    /// # Errors
    ///
    /// [`ProtocolError::UnsupportedEncoding`] of an unknown name; the socket is closed with
    /// the code 1003.
    pub fn of_offer(name: Option<&str>) -> Result<Self, ProtocolError> {
        name.map_or(Ok(Self::default()), |name| {
            Self::named(name)
                .ok_or_else(|| ProtocolError::UnsupportedEncoding { name: shown(name).to_owned() })
        })
    }

    /// The value of `content-type` of a body.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Cbor | Self::Bare => "application/octet-stream",
        }
    }

    /// Whether its frames are text frames.
    pub const fn is_text(self) -> bool {
        matches!(self, Self::Json)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// §3.1 and §4.2.
    #[test]
    fn a_header_that_is_missing_or_unknown_means_json_but_an_unknown_offer_is_refused() {
        assert_eq!(Encoding::of_header(None), Encoding::Json);
        assert_eq!(Encoding::of_header(Some("xml")), Encoding::Json);
        assert_eq!(Encoding::of_header(Some("bare")), Encoding::Bare);
        assert_eq!(Encoding::of_offer(None), Ok(Encoding::Json));
        assert_eq!(Encoding::of_offer(Some("cbor")), Ok(Encoding::Cbor));

        let refused = ProtocolError::UnsupportedEncoding { name: "xml".into() };
        assert_eq!(Encoding::of_offer(Some("xml")), Err(refused));
    }
}
