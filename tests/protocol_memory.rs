//! How much memory a client can make a decoder ask for: a small multiple of what it sent,
//! however it is made. An allocator that counts per thread watches the decoders.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use bytes::Bytes;
use greenroom::protocol::http::{ActionRequest, QueueSendRequest};
use greenroom::protocol::manager::{ActorsQuery, CreateRequest, parse_key};
use greenroom::protocol::route::{Hints, route};
use greenroom::protocol::{Encoding, MAX_DEPTH, Offer, Payload, ToClient, ToServer, Wire};
use proptest::prelude::*;

/// The bytes of a message as long as a client may send.
const LONG: usize = 65_536;

/// How many bytes may be held at once for each byte that came in. A short number of JSON
/// has nine bytes in CBOR, and what grows is there twice for a moment.
const FACTOR: usize = 10;

/// What a message of any length may cost: one note per level of nesting.
const FIXED: usize = 64 * MAX_DEPTH;

thread_local! {
    static HELD: Cell<usize> = const { Cell::new(0) };
    static MOST: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

impl Counting {
    fn more(bytes: usize) {
        // Without the thread-locals a thread is at its end and measures nothing.
        let _ = HELD.try_with(|held| {
            held.set(held.get() + bytes);
            let _ = MOST.try_with(|most| most.set(most.get().max(held.get())));
        });
    }

    fn less(bytes: usize) {
        // What another thread has allocated may end here.
        let _ = HELD.try_with(|held| held.set(held.get().saturating_sub(bytes)));
    }
}

// SAFETY: every call is the system allocator's, which keeps the contract; the counters
// allocate nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::more(layout.size());
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        Self::less(layout.size());
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // The old bytes may be there until the new ones are.
        Self::more(size);
        // SAFETY: the caller keeps the contract of `realloc`.
        let moved = unsafe { System.realloc(pointer, layout, size) };
        Self::less(layout.size());
        moved
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most bytes that `read` holds at once, those that were held before left out.
fn cost<T>(read: impl FnOnce() -> T) -> usize {
    let before = HELD.get();
    MOST.set(before);
    let value = read();
    let most = MOST.get();
    drop(value);
    most - before
}

/// Reads the bytes as all that a client may send.
fn is_cheap(what: &str, bytes: &[u8]) {
    let limit = FACTOR * bytes.len() + FIXED;
    let input = Bytes::copy_from_slice(bytes);
    let text = String::from_utf8_lossy(bytes);
    let check = |reader: &str, cost: usize| {
        assert!(cost <= limit, "{reader} of {what}: {cost} bytes for {}", bytes.len());
    };
    for encoding in Encoding::ALL {
        let name = encoding.name();
        check(name, cost(|| ToServer::decode(encoding, input.clone())));
        check(name, cost(|| ToClient::decode(encoding, input.clone())));
        check(name, cost(|| ActionRequest::decode(encoding, input.clone())));
        check(name, cost(|| QueueSendRequest::decode(encoding, input.clone())));
    }
    check("payload", cost(|| Payload::new(input.clone())));
    check("parameters", cost(|| Payload::from_json(bytes)));
    check("offer", cost(|| (Offer::parse([&*text]), Offer::parse([&*text]).params())));
    check("request", cost(|| CreateRequest::decode(bytes)));
    check("query", cost(|| ActorsQuery::parse(&text)));
    check("key", cost(|| parse_key(&text)));
    check("url", cost(|| route(&text, &Hints::of_call(|_| None))));
}

fn times(part: &[u8]) -> Vec<u8> {
    part.repeat(LONG / part.len())
}

/// A frame with `args`, and the body of an HTTP call with it.
fn in_messages(what: &str, args: &[u8]) {
    let frame = [
        &b"\xa1\x64body\xa2\x63tag\x6dActionRequest\x63val\xa3\x62id\x01\x64name\x61a\x64args"[..],
        args,
    ];
    is_cheap(what, args);
    is_cheap(what, &frame.concat());
    is_cheap(what, &[b"\xa1\x64args", args].concat());
    is_cheap(what, &[b"\xa1\x64name", args].concat());
}

#[test]
fn the_allocator_counts_what_is_held_at_once() {
    assert_eq!(cost(|| drop((vec![0_u8; 100], vec![0_u8; 50]))), 150);
    assert_eq!(cost(|| (drop(vec![0_u8; 100]), vec![0_u8; 50])), 100);
}

#[test]
fn a_length_that_is_claimed_costs_nothing() {
    for head in [0x5b_u8, 0x7b, 0x9b, 0xbb] {
        for length in [u64::MAX, u64::MAX / 2, 1 << 40, 1 << 20] {
            let item = [&[head][..], &length.to_be_bytes(), b"a"].concat();
            in_messages("a claimed length in CBOR", &item);
        }
    }
    for length in [&b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"[..], b"\xff\xff\xff\xff\x0f"] {
        for before in [&b"\x04\0"[..], b"\x04\0\0\0", b"\x04\0\x01", b"\x04\0\0\0\x01a"] {
            is_cheap("a claimed length in BARE", &[before, length, b"a"].concat());
        }
    }
}

#[test]
fn a_long_message_of_any_shape_costs_a_small_multiple_of_its_length() {
    let chunked = |head: u8, chunk: &[u8]| [&[head][..], &times(chunk), &[0xff]].concat();
    let in_cbor = [
        ("nested arrays", times(&[0x81])),
        ("open arrays", times(&[0x9f])),
        ("nested maps", times(&[0xa1, 0x60])),
        ("tags", times(&[0xc1])),
        ("a text in pieces", chunked(0x7f, b"\x61a")),
        ("a text in empty pieces", chunked(0x7f, b"\x60")),
        ("bytes in pieces", chunked(0x5f, b"\x41a")),
        ("an open array of numbers", chunked(0x9f, b"\x01")),
        ("an open map", chunked(0xbf, b"\x61a\x01")),
        ("a map with names in pieces", chunked(0xbf, b"\x7f\x61a\xff\x01")),
        ("a long text", [&b"\x7a\0\0\xff\xf0"[..], &[b'a'; 0xfff0]].concat()),
    ];
    for (what, item) in in_cbor {
        in_messages(what, &item);
    }

    let list = |item: &str| format!("[{}1]", item.repeat(LONG / item.len()));
    let object = |pair: &str| format!(r#"{{{}"z":1}}"#, pair.repeat(LONG / pair.len()));
    let in_json = [
        ("nested arrays", "[".repeat(LONG)),
        ("nested objects", r#"{"a":"#.repeat(LONG / 5)),
        ("numbers", list("1,")),
        ("floats", list("9e9,")),
        ("empty texts", list(r#""","#)),
        ("empty arrays", list("[],")),
        ("lists of lists", list("[[[[[[1]]]]]],")),
        ("one name again and again", object(r#""args":1,"#)),
        ("short names", object(r#""":1,"#)),
        ("escapes", format!(r#""{}""#, r"\u0041".repeat(LONG / 6))),
        ("a long number", "1".repeat(LONG)),
        ("a long fraction", format!("0.{}", "1".repeat(LONG))),
        ("an unknown field", format!(r#"{{"{}":1}}"#, "x".repeat(LONG))),
    ];
    for (what, text) in in_json {
        is_cheap(what, text.as_bytes());
        is_cheap(what, format!(r#"{{"args":{text}}}"#).as_bytes());
        let val = format!(r#"{{"id":1,"name":"a","args":{text}}}"#);
        let frame = format!(r#"{{"body":{{"tag":"ActionRequest","val":{val}}}}}"#);
        is_cheap(what, frame.as_bytes());
    }
}

#[test]
fn a_long_url_costs_a_small_multiple_of_its_length() {
    let query = "/gateway/a?rvt-namespace=n&rvt-method=get";
    for part in
        [",", "/", "&", "=", "%41", "&x=1", "&rvt-", "&rvt-bogus=1", "&rvt-key=a", r"\0/", "a,"]
    {
        let long = String::from_utf8(times(part.as_bytes())).unwrap();
        is_cheap("a text", long.as_bytes());
        is_cheap("a path", format!("/gateway/a/{long}").as_bytes());
        is_cheap("a query", format!("{query}&{long}").as_bytes());
        is_cheap("a key", format!("{query}&rvt-key={long}").as_bytes());
        is_cheap("a key", format!("name=a&key={long}").as_bytes());
        is_cheap("ids", format!("actor_ids={long}").as_bytes());
        is_cheap("an offer", format!("rivet_conn_params.{long}").as_bytes());
    }
}

proptest! {
    #[test]
    fn bytes_of_any_kind_cost_a_small_multiple_of_their_length(
        bytes in proptest::collection::vec(any::<u8>(), 0..512),
    ) {
        is_cheap("any bytes", &bytes);
        is_cheap("any bytes in BARE", &[b"\x04\0", &bytes[..]].concat());
    }
}
