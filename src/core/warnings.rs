//! Keeps repeated warnings from flooding the log.

/// What is warned about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WarningKind {
    /// A caller sent work to an instance that no longer takes any.
    WorkSentToStoppingInstance,
    /// Work arrived while the actor was still starting: probably the actor calls
    /// itself and would wait for its own start.
    SelfCallRisk,
}
