//! Tests of all messages in all encodings.

mod bare;
mod maps;
mod oracle;
mod properties;
mod refused;
mod samples;
