//! What an actor has been asked to do later.

pub mod cron;
