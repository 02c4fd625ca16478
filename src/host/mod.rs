//! Where actors live: the directory, one live generation each.
//!
//! A host decides *where* and *when* an actor lives; what it does while it lives
//! is decided in [`crate::core`].

pub mod embedded;
