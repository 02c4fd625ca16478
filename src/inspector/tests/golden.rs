//! The samples as the published codec writes them; no text where a version has no such message.

use bytes::Bytes;

use super::samples;
use crate::inspector::{ToClient, ToServer, Version};

/// What it writes of messages of each version.
type Golden = [(Version, &'static [&'static str]); 6];

const TO_SERVER: Golden = [
    (
        Version::V6,
        &[
            "0002182a",
            "0101",
            "0202",
            "030303616464028105",
            "0404",
            "0505010203",
            "0606c801",
            "0707",
            "0808010165",
            "0909",
            "0a0a01740100",
            "0b0b",
            "0c0c056461696c7909",
            "0d0d056461696c790463726f6e",
        ],
    ),
    (
        Version::V5,
        &[
            "0002182a",
            "0101",
            "0202",
            "030303616464028105",
            "0404",
            "0505010203",
            "0606c801",
            "0707",
            "0808010165",
            "0909",
            "0a0a01740100",
            "",
            "",
            "",
        ],
    ),
    (
        Version::V4,
        &[
            "0002182a",
            "0101",
            "0202",
            "030303616464028105",
            "0404",
            "0505010203",
            "0606c801",
            "0707",
            "0808010165",
            "0909",
            "0a0a01740100",
            "",
            "",
            "",
        ],
    ),
    (
        Version::V3,
        &[
            "0002182a",
            "0101",
            "0202",
            "030303616464028105",
            "0404",
            "0505010203",
            "0606c801",
            "0707",
            "",
            "0809",
            "090a01740100",
            "",
            "",
            "",
        ],
    ),
    (
        Version::V2,
        &[
            "0002182a",
            "0101",
            "0202",
            "030303616464028105",
            "0404",
            "0505010203",
            "0606c801",
            "0707",
            "",
            "",
            "",
            "",
            "",
            "",
        ],
    ),
    (
        Version::V1,
        &[
            "0002182a",
            "0101",
            "0202",
            "030303616464028105",
            "0604",
            "",
            "",
            "",
            "",
            "",
            "",
            "",
            "",
            "",
        ],
    ),
];

const TO_CLIENT: Golden = [
    (
        Version::V6,
        &[
            "000101010501",
            "01020102633101a0",
            "0203010f",
            "0300",
            "04ac02",
            "0502182a",
            "06020102",
            "0701056461696c7901056461696c790463726f6e047469636b0180ac02000109302030202a202a20\
         2a010355544300010a",
            "0804020361646403676574",
            "090500",
            "0a0602e8070101046a6f62730501",
            "0b070000",
            "0c0801010101",
            "0d0900",
            "0e0a056461696c7901047469636b01020103056572726f7201047573657203626164026e6f0101f6",
            "0f0b056461696c7901",
            "10026f68",
            "110102633101a001010501010361646400020000010174010154000001056461696c790105646169\
         6c790463726f6e047469636b0180ac02000109302030202a202a202a010355544300010a",
            "120c01a0",
            "130d0180",
        ],
    ),
    (
        Version::V5,
        &[
            "000101010501",
            "01020102633101a0",
            "0203010f",
            "0300",
            "04ac02",
            "0502182a",
            "06020102",
            "",
            "0704020361646403676574",
            "080500",
            "090602e8070101046a6f62730501",
            "0a070000",
            "0b0801010101",
            "",
            "",
            "",
            "0c026f68",
            "0d0102633101a0010105010103616464000200000101740101540000",
            "0e0c01a0",
            "0f0d0180",
        ],
    ),
    (
        Version::V4,
        &[
            "000101010501",
            "01020102633101a0",
            "0203010f",
            "0300",
            "04ac02",
            "0502182a",
            "06020102",
            "",
            "0704020361646403676574",
            "080500",
            "090602e8070101046a6f62730501",
            "0a070000",
            "0b0801010101",
            "",
            "",
            "",
            "0c026f68",
            "0d0102633101a001010501010361646400020000",
            "0e0c01a0",
            "0f0d0180",
        ],
    ),
    (
        Version::V3,
        &[
            "000101010501",
            "01020102633101a0",
            "0203010f",
            "0300",
            "04ac02",
            "0502182a",
            "06020102",
            "",
            "0704020361646403676574",
            "080500",
            "090602e8070101046a6f62730501",
            "0a070000",
            "",
            "",
            "",
            "",
            "0b026f68",
            "0c0102633101a001010501010361646400020000",
            "0d0c01a0",
            "0e0d0180",
        ],
    ),
    (
        Version::V2,
        &[
            "000101010501",
            "01020102633101a0",
            "0203010f",
            "0300",
            "04ac02",
            "0502182a",
            "06020102",
            "",
            "0704020361646403676574",
            "080500",
            "090602e8070101046a6f62730501",
            "0a070000",
            "",
            "",
            "",
            "",
            "0b026f68",
            "0c0102633101a001010501010361646400020000",
            "",
            "",
        ],
    ),
    (
        Version::V1,
        &[
            "000101010501",
            "01020102633101a0",
            "0303010f",
            "0500",
            "",
            "0702182a",
            "",
            "",
            "0404020361646403676574",
            "",
            "",
            "",
            "",
            "",
            "",
            "",
            "08026f68",
            "090102633101a00001010501010361646400",
            "",
            "",
        ],
    ),
];

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

#[test]
fn what_a_dashboard_says_is_as_the_published_codec_writes_it() {
    for (version, golden) in TO_SERVER {
        for (message, hex) in samples::to_server().into_iter().zip(golden) {
            let encoded = message.encode(version);
            if hex.is_empty() {
                assert!(encoded.is_err(), "{version:?} {message:?}");
                continue;
            }
            assert_eq!(encoded, Ok(bytes(hex)), "{version:?} {message:?}");
            assert_eq!(ToServer::decode(version, Bytes::from(bytes(hex))), Ok(message));
        }
    }
}

#[test]
fn what_a_dashboard_is_told_is_as_the_published_codec_writes_it() {
    for (version, golden) in TO_CLIENT {
        for (message, hex) in samples::to_client().into_iter().zip(golden) {
            let encoded = message.encode(version);
            if hex.is_empty() {
                let told = ToClient::decode(version, encoded.into());
                assert!(matches!(told, Ok(ToClient::Error { .. })), "{version:?} {message:?}");
                continue;
            }
            assert_eq!(encoded, bytes(hex), "{version:?} {message:?}");
            assert!(ToClient::decode(version, Bytes::from(bytes(hex))).is_ok(), "{version:?}");
        }
    }
}
