//! URLs, what stands beside them, and the calls of the manager.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| greenroom::protocol::fuzz::requests(input));
