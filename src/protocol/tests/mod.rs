//! Tests of all messages in all encodings.

mod bare;
mod maps;
mod refused;
mod samples;
