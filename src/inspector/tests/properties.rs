use bytes::Bytes;
use proptest::prelude::*;

use crate::inspector::{ToClient, ToServer, Version};

proptest! {
    #[test]
    fn no_bytes_make_a_decoder_panic_and_what_it_reads_is_written_as_it_was(
        bytes in proptest::collection::vec(any::<u8>(), 0..64),
        version in 0_usize..6,
    ) {
        let version = Version::ALL[version];
        let bytes = Bytes::from(bytes);
        if let Ok(message) = ToServer::decode(version, bytes.clone()) {
            prop_assert_eq!(message.encode(version).unwrap(), bytes.to_vec());
        }
        if let Ok(message) = ToClient::decode(version, bytes.clone()) {
            let again = ToClient::decode(version, message.encode(version).into());
            prop_assert_eq!(again, Ok(message));
        }
    }
}
