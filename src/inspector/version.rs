//! The versions of the protocol.

use super::InspectorError;

/// A version of the inspector's protocol. All of them are read and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// Events, and no queues, workflows, traces.
    V1 = 1,
    /// No databases.
    V2 = 2,
    /// No replay of workflows.
    V3 = 3,
    /// No tabs in the greeting.
    V4 = 4,
    /// No schedules.
    V5 = 5,
    /// All of it.
    V6 = 6,
}

impl Version {
    /// All of them, the oldest first.
    pub const ALL: [Self; 6] = [Self::V1, Self::V2, Self::V3, Self::V4, Self::V5, Self::V6];

    /// The newest.
    pub const CURRENT: Self = Self::V6;

    /// What a dashboard speaks that does not say which: each frame has the version in front.
    pub const UNSAID: Self = Self::V5;

    /// The number in front of a message, and in an URL.
    pub const fn number(self) -> u16 {
        self as u16
    }

    /// The version of a number.
    ///
    /// # Errors
    ///
    /// [`InspectorError::UnknownVersion`].
    pub fn of(number: u64) -> Result<Self, InspectorError> {
        Self::ALL
            .into_iter()
            .find(|version| u64::from(version.number()) == number)
            .ok_or_else(|| InspectorError::UnknownVersion { version: number.to_string() })
    }
}
