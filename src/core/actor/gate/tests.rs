use proptest::prelude::*;

use super::*;

fn reply() -> Gate<&'static str> {
    Gate::new(Durability::Reply)
}

/// Offers an output the way the machine does.
fn offer<T>(gate: &mut Gate<T>, dirty: bool, output: T) -> Held<T> {
    gate.hold_behind(gate.required(dirty), gate.required_statement(), output)
}

#[test]
fn an_output_with_nothing_before_it_leaves_at_once() {
    let mut gate = reply();

    assert_eq!(gate.required(false), Required::Pass);
    assert_eq!(offer(&mut gate, false, "read"), Held::Leaves("read"));
    assert_eq!((gate.waiting_len(), gate.all_durable()), (0, true));
}

#[test]
fn an_output_after_a_change_waits_for_the_commit_that_carries_it() {
    let mut gate = reply();
    assert_eq!(offer(&mut gate, true, "a"), Held::Waits);
    let one = gate.begin(true);
    assert_eq!(one.get(), 1);

    assert_eq!(gate.durable(one), ["a"]);
    assert_eq!(gate.durable_number(), one);
}

#[test]
fn a_commit_without_the_state_does_not_let_out_what_waits_for_the_state() {
    let mut gate = reply();
    assert_eq!(offer(&mut gate, true, "a"), Held::Waits);
    let other = gate.begin(false);
    assert_eq!(gate.durable(other), [""; 0]);

    let state = gate.begin(true);

    assert_eq!(gate.durable(state), ["a"]);
}

#[test]
fn a_clean_output_waits_for_the_commit_on_its_way() {
    let mut gate = reply();
    let one = gate.begin(true);
    assert_eq!(gate.required(false), Required::Commit(one));
    assert_eq!(offer(&mut gate, false, "read of what is not durable"), Held::Waits);

    assert_eq!(gate.durable(one), ["read of what is not durable"]);
    assert_eq!(gate.required(false), Required::Pass);
}

#[test]
fn a_later_change_does_not_hold_up_earlier_outputs() {
    let mut gate = reply();
    assert_eq!(offer(&mut gate, true, "first"), Held::Waits);
    let one = gate.begin(true);
    assert_eq!(offer(&mut gate, true, "second"), Held::Waits);

    assert_eq!(gate.durable(one), ["first"]);
    let two = gate.begin(true);
    assert_eq!(gate.durable(two), ["second"]);
}

#[test]
fn a_clean_output_does_not_overtake_one_that_waits_for_the_next_commit() {
    let mut gate = reply();
    assert_eq!(offer(&mut gate, true, "first"), Held::Waits);
    assert_eq!(gate.required(false), Required::Next);
    assert_eq!(gate.hold(Required::Commit(gate.begun()), "second"), Held::Waits);

    let one = gate.begin(true);

    assert_eq!(gate.durable(one), ["first", "second"]);
}

#[test]
fn several_commits_that_become_durable_together_let_all_out_in_order() {
    let mut gate = reply();
    for output in ["a", "b", "c"] {
        assert_eq!(offer(&mut gate, true, output), Held::Waits);
        gate.begin(true);
    }

    assert_eq!(gate.durable(gate.begun()), ["a", "b", "c"]);
}

#[test]
fn the_durable_number_never_falls_and_never_passes_the_begun_one() {
    let mut gate = reply();
    let one = gate.begin(true);
    let two = gate.begin(true);
    assert_eq!(gate.durable(two), [""; 0]);
    assert_eq!(gate.durable(one), [""; 0]);

    assert_eq!(gate.durable_number(), two);
    assert_eq!(gate.durable(CommitNumber(99)), [""; 0]);
    assert_eq!(gate.durable_number(), two);
}

#[test]
fn a_change_that_came_to_nothing_holds_nothing_up() {
    let mut gate = reply();
    assert_eq!(offer(&mut gate, true, "a"), Held::Waits);
    let kv = gate.begin(false);

    assert_eq!(gate.settle(), [""; 0]);
    assert_eq!(gate.durable(kv), ["a"]);
    assert_eq!(offer(&mut gate, true, "b"), Held::Waits);
    assert_eq!(gate.settle(), ["b"]);
}

#[test]
fn a_failed_commit_fails_what_waits_and_whatever_comes_later() {
    let mut gate = reply();
    assert_eq!(offer(&mut gate, true, "a"), Held::Waits);
    let one = gate.begin(true);
    assert_eq!(offer(&mut gate, true, "b"), Held::Waits);

    assert_eq!(gate.fail(), ["a", "b"]);
    assert_eq!(offer(&mut gate, false, "c"), Held::Broken("c"));
    assert_eq!(gate.durable(one), [""; 0]);
    assert_eq!(offer(&mut gate, false, "d"), Held::Broken("d"));
    assert!(gate.is_broken());
}

#[test]
fn in_mode_interval_nothing_waits_unless_it_asks_to() {
    let mut gate = Gate::new(Durability::Interval);
    let one = gate.begin(true);
    assert_eq!(offer(&mut gate, true, "reply"), Held::Leaves("reply"));

    assert_eq!(gate.fence(false), Required::Commit(one));
    assert_eq!(gate.hold(gate.fence(false), "flush"), Held::Waits);
    assert_eq!(offer(&mut gate, true, "reply"), Held::Leaves("reply"));

    assert_eq!(gate.durable(one), ["flush"]);
}

#[test]
fn in_mode_interval_a_failed_commit_fails_who_waits_and_the_gate_goes_on() {
    let mut gate = Gate::new(Durability::Interval);
    let one = gate.begin(true);
    assert_eq!(gate.hold(gate.fence(false), "flush"), Held::Waits);
    let two = gate.begin(true);

    assert_eq!(gate.give_up(one), ["flush"]);
    assert_eq!(gate.fence(false), Required::Commit(two));
    assert_eq!(gate.hold(gate.fence(false), "again"), Held::Waits);
    assert_eq!(gate.durable(two), ["again"]);
    assert_eq!(gate.fence(false), Required::Pass);
}

#[test]
fn an_output_waits_for_the_statements_that_were_asked_for_before_it_whatever_their_order() {
    let mut gate = reply();
    let (one, two) = (gate.begin_statement(), gate.begin_statement());
    assert_eq!(offer(&mut gate, false, "a"), Held::Waits);
    let three = gate.begin_statement();

    assert_eq!(gate.end_statement(three), [""; 0]);
    assert_eq!(gate.end_statement(two), [""; 0]);
    assert_eq!(gate.end_statement(one), ["a"]);
    assert_eq!(offer(&mut gate, false, "b"), Held::Leaves("b"));
}

#[test]
fn an_output_may_have_to_wait_for_a_commit_and_for_a_statement() {
    let mut gate = reply();
    let statement = gate.begin_statement();
    assert_eq!(offer(&mut gate, true, "a"), Held::Waits);
    let commit = gate.begin(true);

    assert_eq!(gate.durable(commit), [""; 0]);
    assert_eq!(offer(&mut gate, false, "b"), Held::Waits);
    assert_eq!(gate.end_statement(statement), ["a", "b"]);
}

#[test]
fn in_mode_interval_only_who_asks_to_waits_for_a_statement() {
    let mut gate = Gate::new(Durability::Interval);
    let statement = gate.begin_statement();
    assert_eq!(offer(&mut gate, false, "reply"), Held::Leaves("reply"));
    assert_eq!(gate.hold_behind(Required::Pass, gate.last_statement(), "flush"), Held::Waits);

    assert_eq!(gate.give_up_statement(statement), ["flush"]);
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Change,
    /// A statement is asked for.
    Ask,
    /// One of the open statements ends.
    End(usize),
    /// Begins a commit; with the state if it is dirty and this says so.
    Commit(bool),
    /// The oldest commit on its way becomes durable; skips that many.
    Durable(u8),
    Output,
    /// The state turns out to be what it was.
    Undo,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => Just(Step::Change),
        2 => any::<bool>().prop_map(Step::Commit),
        2 => (0..3u8).prop_map(Step::Durable),
        4 => Just(Step::Output),
        1 => Just(Step::Undo),
        1 => Just(Step::Ask),
        1 => (0..4usize).prop_map(Step::End),
    ]
}

/// What the gate is held to: the changes themselves instead of numbers.
#[derive(Default)]
struct Model {
    /// How many changes were made to the state.
    changes: u32,
    /// Up to which one a commit carries them.
    carried: u32,
    /// For each commit begun, the changes of the state that are durable with it.
    commits: Vec<u32>,
    /// How many commits are durable.
    durable: usize,
    /// The statements that have not ended.
    open: Vec<StatementNumber>,
    /// Each output: the changes, the commits and the open statements before it.
    outputs: Vec<(u32, usize, Vec<StatementNumber>)>,
    left: Vec<usize>,
}

impl Model {
    /// Records that outputs left, and checks that nothing before them is undurable.
    fn leave(&mut self, outputs: impl IntoIterator<Item = usize>) {
        for output in outputs {
            let (changes, commits, statements) = &self.outputs[output];
            let durable = self.commits[..self.durable].last().copied().unwrap_or(0);
            assert!(*changes <= durable, "output {output} reveals a lost change");
            assert!(*commits <= self.durable, "output {output} passed a commit on its way");
            let passed = statements.iter().find(|number| self.open.contains(number));
            assert_eq!(passed, None, "output {output} passed a statement");
            self.left.push(output);
        }
    }
}

proptest! {
    #[test]
    fn outputs_leave_in_order_after_what_came_before_them_and_none_stays(
        steps in prop::collection::vec(step(), 0..60),
    ) {
        let mut gate = Gate::new(Durability::Reply);
        let mut model = Model::default();
        for step in steps {
            match step {
                Step::Change => model.changes += 1,
                Step::Commit(with_state) => {
                    let carries = with_state && model.carried < model.changes;
                    if carries {
                        model.carried = model.changes;
                    }
                    model.commits.push(model.carried);
                    prop_assert_eq!(gate.begin(carries).get(), model.commits.len() as u64);
                }
                Step::Durable(skip) => {
                    let n = (model.durable + 1 + usize::from(skip)).min(model.commits.len());
                    model.durable = model.durable.max(n);
                    let left = gate.durable(CommitNumber(n as u64));
                    model.leave(left);
                }
                Step::Output => {
                    let output = model.outputs.len();
                    let before = (model.changes, model.commits.len(), model.open.clone());
                    model.outputs.push(before);
                    match offer(&mut gate, model.carried < model.changes, output) {
                        Held::Waits => {}
                        Held::Leaves(output) => model.leave([output]),
                        Held::Broken(_) => prop_assert!(false, "nothing failed"),
                    }
                }
                Step::Undo if model.carried < model.changes => {
                    // The changes since the last commit of the state never were.
                    for (changes, ..) in &mut model.outputs {
                        *changes = (*changes).min(model.carried);
                    }
                    model.changes = model.carried;
                    let left = gate.settle();
                    model.leave(left);
                }
                Step::Undo => {}
                Step::Ask => model.open.push(gate.begin_statement()),
                Step::End(at) if at < model.open.len() => {
                    let ended = model.open.remove(at);
                    let left = gate.end_statement(ended);
                    model.leave(left);
                }
                Step::End(_) => {}
            }
        }

        for ended in std::mem::take(&mut model.open) {
            let left = gate.end_statement(ended);
            model.leave(left);
        }

        if model.carried < model.changes {
            model.carried = model.changes;
            model.commits.push(model.carried);
            gate.begin(true);
        }
        model.durable = model.commits.len();
        let left = gate.durable(gate.begun());
        model.leave(left);
        prop_assert_eq!(gate.waiting_len(), 0);
        prop_assert_eq!(model.left, (0..model.outputs.len()).collect::<Vec<_>>());
    }
}
