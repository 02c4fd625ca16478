//! Which tabs the inspector shows for a type of actors.
//!
//! # Invariants
//!
//! 1. No id occurs twice.
//! 2. Only tabs of our own can be hidden, and no custom tab takes the id of one.

use crate::error::InvalidArgument;

/// The ids of the tabs that the inspector has by itself.
pub const BUILT_IN_TABS: [&str; 7] =
    ["workflow", "database", "state", "queue", "schedules", "connections", "console"];

/// The most of a refused value that an error repeats, in characters.
const MAX_QUOTED: usize = 64;

/// A custom tab, or one of our own that is hidden.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InspectorTab {
    /// Letters, digits, `_` and `-`; of a hidden tab, one of [`BUILT_IN_TABS`].
    pub id: String,
    /// What a custom tab is called; required there.
    pub label: Option<String>,
    /// The folder with a custom tab's files; required there.
    pub source: Option<String>,
    /// The icon of a custom tab.
    pub icon: Option<String>,
    /// Hides a tab of our own.
    pub hidden: bool,
}

/// Checks a list of tabs.
pub(super) fn validate(tabs: &[InspectorTab]) -> Result<(), InvalidArgument> {
    for (index, tab) in tabs.iter().enumerate() {
        if tab.hidden {
            validate_hidden(tab)?;
        } else {
            validate_custom(tab)?;
        }
        if tabs[..index].iter().any(|earlier| earlier.id == tab.id) {
            return refuse("inspector tab id", &tab.id, "it occurs twice");
        }
    }
    Ok(())
}

fn validate_hidden(tab: &InspectorTab) -> Result<(), InvalidArgument> {
    if is_built_in(&tab.id) {
        return Ok(());
    }
    let known = BUILT_IN_TABS.join(", ");
    refuse("inspector tab id", &tab.id, format!("only these tabs can be hidden: {known}"))
}

fn validate_custom(tab: &InspectorTab) -> Result<(), InvalidArgument> {
    let well_formed = !tab.id.is_empty()
        && tab.id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    if !well_formed {
        return refuse("inspector tab id", &tab.id, "it must be letters, digits, _ and - only");
    }
    if is_built_in(&tab.id) {
        return refuse("inspector tab id", &tab.id, "it is the id of a built-in tab");
    }
    require("label", tab, tab.label.as_deref())?;
    require("source", tab, tab.source.as_deref())?;
    if tab.icon.as_deref() == Some("") {
        return refuse("inspector tab", &tab.id, "its icon is empty");
    }
    Ok(())
}

fn require(field: &str, tab: &InspectorTab, value: Option<&str>) -> Result<(), InvalidArgument> {
    match value {
        None => refuse("inspector tab", &tab.id, format!("it has no {field}")),
        Some("") => refuse("inspector tab", &tab.id, format!("its {field} is empty")),
        Some(_) => Ok(()),
    }
}

fn is_built_in(id: &str) -> bool {
    BUILT_IN_TABS.contains(&id)
}

fn refuse(
    what: &'static str,
    value: &str,
    reason: impl Into<String>,
) -> Result<(), InvalidArgument> {
    let value = format!("{:?}", value.chars().take(MAX_QUOTED).collect::<String>());
    Err(InvalidArgument { what, value, reason: reason.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn custom(id: &str) -> InspectorTab {
        InspectorTab {
            id: id.into(),
            label: Some("Label".into()),
            source: Some("./tab".into()),
            ..InspectorTab::default()
        }
    }

    fn hidden(id: &str) -> InspectorTab {
        InspectorTab { id: id.into(), hidden: true, ..InspectorTab::default() }
    }

    fn reason(tabs: &[InspectorTab]) -> String {
        validate(tabs).unwrap_err().reason
    }

    #[test]
    fn custom_tabs_and_hidden_built_in_ones_are_accepted() {
        let mut tabs = vec![custom("my-tab_2"), custom("Other")];
        tabs.extend(BUILT_IN_TABS.map(hidden));

        assert_eq!(validate(&tabs), Ok(()));
    }

    #[test]
    fn a_custom_id_is_letters_digits_underscore_and_hyphen() {
        for id in ["", "a b", "a/b", "é", "a.b"] {
            assert_eq!(reason(&[custom(id)]), "it must be letters, digits, _ and - only", "{id}");
        }
    }

    #[test]
    fn a_custom_tab_cannot_take_the_place_of_a_built_in_one() {
        for id in BUILT_IN_TABS {
            assert_eq!(reason(&[custom(id)]), "it is the id of a built-in tab");
        }
    }

    #[test]
    fn only_a_built_in_tab_can_be_hidden() {
        let error = validate(&[hidden("mine")]).unwrap_err();

        assert_eq!(error.value, "\"mine\"");
        assert!(error.reason.starts_with("only these tabs can be hidden: workflow, "));
    }

    #[test]
    fn an_id_occurs_once() {
        assert_eq!(reason(&[custom("a"), custom("b"), custom("a")]), "it occurs twice");
        assert_eq!(reason(&[hidden("state"), hidden("state")]), "it occurs twice");
    }

    #[test]
    fn a_custom_tab_needs_a_label_and_a_source_and_no_empty_text() {
        let without = |change: fn(&mut InspectorTab)| {
            let mut tab = custom("a");
            change(&mut tab);
            reason(&[tab])
        };

        assert_eq!(without(|tab| tab.label = None), "it has no label");
        assert_eq!(without(|tab| tab.label = Some(String::new())), "its label is empty");
        assert_eq!(without(|tab| tab.source = None), "it has no source");
        assert_eq!(without(|tab| tab.source = Some(String::new())), "its source is empty");
        assert_eq!(without(|tab| tab.icon = Some(String::new())), "its icon is empty");
    }
}
