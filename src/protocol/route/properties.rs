//! What holds of every URL.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::*;
use crate::protocol::fuzz;

/// Text as `encodeURIComponent` and `URLSearchParams` write it, which differ in the space.
fn encoded(text: &str, space: &str) -> String {
    let encode = |byte: u8| match byte {
        b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'-' | b'_' | b'.' => char::from(byte).into(),
        b' ' => space.to_owned(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(encode).collect()
}

fn creation() -> impl Strategy<Value = Creation> {
    let crash_policy = prop_oneof![
        Just(CrashPolicy::Restart),
        Just(CrashPolicy::Sleep),
        Just(CrashPolicy::Destroy)
    ];
    let input = option::of(any::<i32>().prop_map(|n| Payload::try_from(&n.into()).unwrap()));
    (".{1,9}", input, option::of(".{0,9}"), crash_policy).prop_map(
        |(pool, input, region, crash_policy)| Creation { pool, input, region, crash_policy },
    )
}

fn query() -> impl Strategy<Value = ActorQuery> {
    let find = prop_oneof![Just(Find::Get), creation().prop_map(Find::GetOrCreate)];
    // A comma would be another part, and a single empty part is none.
    let key = vec("[^,]{0,9}", 0..4).prop_filter("no single empty part", |key| key != &[""]);
    (".{1,9}", r"[^\p{Cc}]{1,16}", key, find).prop_map(|(namespace, name, key, find)| ActorQuery {
        namespace,
        name: ActorName::new(name).unwrap(),
        key: ActorKey::of(key).unwrap(),
        find,
    })
}

/// The parameters of the published client, in its order.
fn parameters(query: &ActorQuery, token: Option<&str>, skip: bool) -> Vec<String> {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    let mut out = vec![];
    let mut put = |name: &str, value: &str| out.push(format!("{name}={}", encoded(value, "+")));
    put("rvt-namespace", &query.namespace);
    let key: Vec<String> = query
        .key
        .parts()
        .iter()
        .map(|part| match part {
            crate::ids::KeyPart::String(text) => text.clone(),
            crate::ids::KeyPart::Number(number) => number.to_string(),
        })
        .collect();
    match &query.find {
        Find::Get => put("rvt-method", "get"),
        Find::GetOrCreate(creation) => {
            put("rvt-method", "getOrCreate");
            put("rvt-runner", &creation.pool);
            if let Some(input) = &creation.input {
                put("rvt-input", &URL_SAFE_NO_PAD.encode(input.cbor()));
            }
            if let Some(region) = &creation.region {
                put("rvt-region", region);
            }
            let policy = serde_json::to_value(creation.crash_policy).unwrap();
            put("rvt-crash-policy", policy.as_str().unwrap());
        }
    }
    if !key.is_empty() {
        put("rvt-key", &key.join(","));
    }
    if let Some(token) = token {
        put("rvt-token", token);
    }
    if skip {
        put("rvt-skip-ready-wait", "true");
    }
    out
}

proptest! {
    #[test]
    fn a_target_is_read_from_the_url_that_a_client_writes_for_it(
        query in query(),
        path in "(/[a-z%&=+@.]{1,6}){0,3}",
        others in vec("[a-z%+]{1,4}=[^&#]{0,6}", 0..3),
        token in option::of(".{1,9}"),
        skip_ready_wait in any::<bool>(),
        split in any::<prop::sample::Index>(),
    ) {
        let ours = parameters(&query, token.as_deref(), skip_ready_wait);
        let split = split.index(others.len() + 1);
        let pairs = [&others[..split], &ours[..], &others[split..]].concat().join("&");
        let uri = format!("/gateway/{}{path}?{pairs}", encoded(query.name.as_str(), "%20"));
        let path = if path.is_empty() { "/" } else { &path };
        let seen = if others.is_empty() {
            path.to_owned()
        } else {
            format!("{path}?{}", others.join("&"))
        };

        let found = route(&uri, &Hints::of_call(|_| None)).unwrap().unwrap();

        let actor = Addressee::Query(query);
        prop_assert_eq!(found, Target { actor, path: seen, token, skip_ready_wait });
    }

    #[test]
    fn an_id_and_a_token_are_read_from_the_url_that_a_client_writes_for_them(
        id in ".{1,9}",
        token in option::of(".{1,9}"),
        path in "(/[a-z%&=+@.]{1,6}){0,3}(\\?[a-z%&=+?]{0,9})?",
    ) {
        let behind = token.as_ref().map_or(String::new(), |t| format!("@{}", encoded(t, "%20")));
        let uri = format!("/gateway/{}{behind}{path}", encoded(&id, "%20"));

        let found = route(&uri, &Hints::of_call(|_| None)).unwrap().unwrap();

        let path = if path.starts_with('/') { path } else { format!("/{path}") };
        let actor = Addressee::Id(id);
        prop_assert_eq!(found, Target { actor, path, token, skip_ready_wait: false });
    }

    #[test]
    fn a_request_of_any_kind_does_no_harm(
        text in "(/gateway/|/request|/|)[a-z/@?&=%#,.+~\\\\0-9é]{0,40}",
        pairs in vec("(rvt-(namespace|method|key|pool|input|bogus)|%72vt%2Dkey|x)=[a-z0-9%,+]{0,6}", 0..5),
        beside in "(rivet_(target|actor|token|encoding|conn_params)\\.[a-z%{}\"]{0,9},? ?){0,4}",
        bytes in vec(any::<u8>(), 0..64),
    ) {
        fuzz::requests(format!("{text}\n{beside}").as_bytes());
        fuzz::requests(format!("{text}?{}\n{beside}", pairs.join("&")).as_bytes());
        fuzz::requests(&bytes);
        fuzz::requests(&[b"/gateway/a?rvt-", &bytes[..]].concat());
    }
}
