//! Payloads in CBOR and JSON.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| greenroom::protocol::fuzz::payloads(input));
