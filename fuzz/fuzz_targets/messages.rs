//! Messages of the client protocol.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| greenroom::protocol::fuzz::messages(input));
