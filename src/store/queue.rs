//! What waits for the writer thread.
//!
//! # Invariants
//!
//! 1. Jobs leave in the order in which they came.
//! 2. What waits weighs at most the limit, unless it is one job alone: a job
//!    heavier than the limit is taken when nothing else waits.
//! 3. A group ends before the job that would make it too heavy, so it is too
//!    heavy only when it is one job.
//! 4. Nothing is called, answered or dropped under the lock.
//! 5. An actor is pending from the moment one of its writes is taken until all
//!    of them have been answered.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::job::{Job, Read, Write};
use super::{ActorNumber, StoreError};

/// How large a group may become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GroupLimit {
    /// Writes.
    pub(super) batches: usize,
    /// Their weight in bytes.
    pub(super) bytes: usize,
}

/// What the writer does next.
pub(super) enum Next {
    /// Commit these.
    Group(Vec<Write>),
    /// Read.
    Read(Read),
    /// Nothing came in time.
    Idle,
    /// Nothing waits and nothing will come.
    Closed,
}

/// Serves one job that waits for its turn, and says whether there was one.
type Serves = Box<dyn Fn() -> bool + Send + Sync>;

/// The queue between callers and the writer thread.
pub(super) struct Queue {
    limit_bytes: usize,
    /// Changed by callers (push, close) and the writer (next, settle, fail).
    state: Mutex<State>,
    /// Told when there may be something to do.
    came: Condvar,
    /// Called when something waits for its turn; absent where nothing has to.
    waits_for_turn: Option<Arc<dyn Fn() + Send + Sync>>,
    /// What serves the next job on the thread that asks for it; only where jobs wait for
    /// their turn, from the opening of the store on.
    serves: OnceLock<Serves>,
}

struct State {
    jobs: VecDeque<Job>,
    waiting_bytes: usize,
    pending: HashMap<ActorNumber, u32>,
    /// Why nothing more is taken; `None` while the store is open.
    refusal: Option<StoreError>,
    closing: bool,
    /// Whether the store has no handle any more.
    is_given_up: bool,
    /// Whether a test holds the writer.
    held: bool,
}

impl Queue {
    /// `waits_for_turn` as in the options of the store.
    pub(super) fn new(
        limit_bytes: usize,
        waits_for_turn: Option<Arc<dyn Fn() + Send + Sync>>,
    ) -> Self {
        let state = State {
            jobs: VecDeque::new(),
            waiting_bytes: 0,
            pending: HashMap::new(),
            refusal: None,
            closing: false,
            is_given_up: false,
            held: false,
        };
        let came = Condvar::new();
        let (state, serves) = (Mutex::new(state), OnceLock::new());
        Self { limit_bytes, waits_for_turn, state, came, serves }
    }

    /// Takes a write. One that is refused is answered here, on the caller's thread.
    pub(super) fn push(&self, write: Write) {
        if let Err(refused) = self.try_push(write) {
            let (write, refusal) = *refused;
            write.answer(Err(refusal));
        }
    }

    /// Takes a write, or gives it back with the reason why not, unanswered.
    pub(super) fn try_push(&self, write: Write) -> Result<(), Box<(Write, StoreError)>> {
        let mut state = self.state.lock();
        if let Some(refusal) = state.refusal(write.weight(), self.limit_bytes) {
            drop(state);
            return Err(Box::new((write, refusal)));
        }
        state.enqueue(write);
        drop(state);
        self.call();
        Ok(())
    }

    /// Takes a reading, to be served on the write connection after everything
    /// that waits.
    pub(super) fn push_read(&self, read: Read) {
        let mut state = self.state.lock();
        if let Some(refusal) = &state.refusal {
            let refusal = refusal.clone();
            drop(state);
            return read(Err(refusal));
        }
        state.jobs.push_back(Job::Read(read));
        drop(state);
        self.call();
    }

    /// Whether writes of this actor are not answered yet.
    pub(super) fn is_pending(&self, number: ActorNumber) -> bool {
        self.state.lock().pending.contains_key(&number)
    }

    /// Waits for something to do, at most for `patience`.
    pub(super) fn next(&self, limit: GroupLimit, patience: Option<Duration>) -> Next {
        let mut state = self.state.lock();
        loop {
            if state.held {
                self.came.wait(&mut state);
                continue;
            }
            if let Some(next) = state.take(limit) {
                return next;
            }
            if state.closing {
                return Next::Closed;
            }
            let Some(patience) = patience else {
                self.came.wait(&mut state);
                continue;
            };
            if self.came.wait_for(&mut state, patience).timed_out() && !state.held {
                return state.take(limit).unwrap_or(Next::Idle);
            }
        }
    }

    /// Something came.
    fn call(&self) {
        match &self.waits_for_turn {
            None => {
                self.came.notify_one();
            }
            Some(waits) => waits(),
        }
    }

    /// Where jobs wait for their turn: `serves` does the next one.
    pub(super) fn served_by(&self, serves: Serves) {
        // It is set once, by the opening.
        drop(self.serves.set(serves));
    }

    /// Where jobs wait for their turn: serves one on this thread. False when none waits.
    pub(super) fn serve_one(&self) -> bool {
        self.serves.get().is_some_and(|serves| serves())
    }

    /// Where jobs wait for their turn: the next one, or that nothing will come.
    pub(super) fn take_one(&self) -> Option<Next> {
        let mut state = self.state.lock();
        if state.closing {
            return Some(Next::Closed);
        }
        state.take(GroupLimit { batches: 1, bytes: usize::MAX })
    }

    /// Nobody will give turns any more.
    pub(super) fn give_up(&self) {
        self.state.lock().is_given_up = true;
        self.came.notify_all();
    }

    /// Returns when nobody will give turns any more.
    pub(super) fn wait_until_given_up(&self) {
        let mut state = self.state.lock();
        while !state.is_given_up {
            self.came.wait(&mut state);
        }
    }

    /// Notes that these writes are about to be answered.
    pub(super) fn settle(&self, numbers: impl IntoIterator<Item = ActorNumber>) {
        let mut state = self.state.lock();
        for number in numbers {
            state.settle(number);
        }
    }

    /// Takes out every write that waits, for an answer by the caller. Readings stay.
    pub(super) fn take_writes(&self) -> Vec<Write> {
        let mut state = self.state.lock();
        let mut writes = Vec::new();
        let mut reads = VecDeque::new();
        for job in std::mem::take(&mut state.jobs) {
            match job {
                Job::Write(write) => writes.push(write),
                read @ Job::Read(_) => reads.push_back(read),
            }
        }
        state.jobs = reads;
        state.waiting_bytes = 0;
        for number in writes.iter().filter_map(Write::number) {
            state.settle(number);
        }
        writes
    }

    /// Refuses everything from here on with `refusal`, what waits included.
    pub(super) fn fail(&self, refusal: &StoreError) {
        let jobs = {
            let mut state = self.state.lock();
            if !state.closing {
                state.refusal = Some(refusal.clone());
            }
            state.waiting_bytes = 0;
            state.pending.clear();
            std::mem::take(&mut state.jobs)
        };
        for job in jobs {
            match job {
                Job::Write(write) => write.answer(Err(refusal.clone())),
                Job::Read(read) => read(Err(refusal.clone())),
            }
        }
    }

    /// Keeps the writer from taking anything, or lets it go on.
    #[cfg(feature = "faults")]
    pub(super) fn hold(&self, held: bool) {
        self.state.lock().held = held;
        self.came.notify_one();
    }

    /// Takes nothing more; what waits is still served.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        state.refusal = Some(StoreError::Closed);
        state.closing = true;
        drop(state);
        self.call();
    }
}

impl State {
    fn refusal(&self, weight: usize, limit_bytes: usize) -> Option<StoreError> {
        if self.refusal.is_some() {
            return self.refusal.clone();
        }
        let waiting_bytes = self.waiting_bytes.saturating_add(weight);
        let is_too_much = waiting_bytes > limit_bytes && self.waiting_bytes > 0;
        is_too_much.then_some(StoreError::Overloaded { waiting_bytes, limit_bytes })
    }

    fn enqueue(&mut self, write: Write) {
        self.waiting_bytes = self.waiting_bytes.saturating_add(write.weight());
        if let Some(number) = write.number() {
            *self.pending.entry(number).or_default() += 1;
        }
        self.jobs.push_back(Job::Write(write));
    }

    fn take(&mut self, limit: GroupLimit) -> Option<Next> {
        let mut group = Vec::new();
        let mut bytes = 0;
        while let Some(job) = self.jobs.pop_front() {
            let write = match job {
                Job::Write(write) => write,
                Job::Read(read) if group.is_empty() => return Some(Next::Read(read)),
                read @ Job::Read(_) => {
                    self.jobs.push_front(read);
                    break;
                }
            };
            let weight = write.weight();
            let is_too_heavy = bytes + weight > limit.bytes;
            if !group.is_empty() && (is_too_heavy || group.len() >= limit.batches) {
                self.jobs.push_front(Job::Write(write));
                break;
            }
            bytes += weight;
            group.push(write);
        }
        self.waiting_bytes -= bytes;
        if group.is_empty() { None } else { Some(Next::Group(group)) }
    }

    fn settle(&mut self, number: ActorNumber) {
        if let Some(count) = self.pending.get_mut(&number) {
            *count -= 1;
            if *count == 0 {
                self.pending.remove(&number);
            }
        }
    }
}

#[cfg(test)]
mod tests {

    use bytes::Bytes;
    use parking_lot::Mutex;

    use super::*;
    use crate::ids::Generation;
    use crate::store::job::Reply;
    use crate::store::{RowOp, WriteBatch};

    const LIMIT: GroupLimit = GroupLimit { batches: 3, bytes: 10_000 };
    const ONCE: Option<Duration> = Some(Duration::ZERO);

    type Answers = Arc<Mutex<Vec<(i64, Result<(), StoreError>)>>>;

    fn write(number: i64, bytes: usize, answers: &Answers) -> Write {
        let answers = Arc::clone(answers);
        Write::Commit {
            number: ActorNumber(number),
            batch: WriteBatch {
                generation: Generation::new(1, 1),
                ops: vec![RowOp::PutState(Bytes::from(vec![0; bytes]))],
                alarm: None,
                fails_generation: false,
            },
            reply: Reply::new(Box::new(move |result| answers.lock().push((number, result)))),
        }
    }

    fn numbers(next: &Next) -> Vec<i64> {
        let Next::Group(group) = next else { return Vec::new() };
        group.iter().filter_map(Write::number).map(|number| number.0).collect()
    }

    #[test]
    fn a_group_ends_at_its_count_and_the_rest_keeps_its_order() {
        let (queue, answers) = (Queue::new(usize::MAX, None), Answers::default());
        for number in 1..=5 {
            queue.push(write(number, 0, &answers));
        }

        assert_eq!(numbers(&queue.next(LIMIT, ONCE)), [1, 2, 3]);
        assert_eq!(numbers(&queue.next(LIMIT, ONCE)), [4, 5]);
        assert!(matches!(queue.next(LIMIT, ONCE), Next::Idle));
    }

    #[test]
    fn a_group_ends_before_the_write_that_makes_it_too_heavy() {
        let (queue, answers) = (Queue::new(usize::MAX, None), Answers::default());
        queue.push(write(1, 10, &answers));
        queue.push(write(2, 20_000, &answers));
        queue.push(write(3, 10, &answers));

        assert_eq!(numbers(&queue.next(LIMIT, ONCE)), [1]);
        assert_eq!(numbers(&queue.next(LIMIT, ONCE)), [2]);
        assert_eq!(numbers(&queue.next(LIMIT, ONCE)), [3]);
    }

    #[test]
    fn a_reading_waits_for_what_came_before_it() {
        let (queue, answers) = (Queue::new(usize::MAX, None), Answers::default());
        queue.push(write(1, 0, &answers));
        queue.push_read(Box::new(|_| ()));
        queue.push(write(2, 0, &answers));

        assert_eq!(numbers(&queue.next(LIMIT, ONCE)), [1]);
        assert!(matches!(queue.next(LIMIT, ONCE), Next::Read(_)));
        assert_eq!(numbers(&queue.next(LIMIT, ONCE)), [2]);
    }

    #[test]
    fn what_would_weigh_too_much_is_refused_and_room_comes_back() {
        let (queue, answers) = (Queue::new(1_000, None), Answers::default());
        queue.push(write(1, 500, &answers));
        queue.push(write(2, 500, &answers));

        let refused = answers.lock().pop().unwrap();
        let weight = write(0, 500, &answers).weight();
        let overloaded = StoreError::Overloaded { waiting_bytes: 2 * weight, limit_bytes: 1_000 };
        assert_eq!(refused, (2, Err(overloaded)));
        drop(queue.next(LIMIT, ONCE));
        queue.push(write(3, 500, &answers));
        assert_eq!(numbers(&queue.next(LIMIT, ONCE)), [3]);
    }

    #[test]
    fn a_write_heavier_than_the_limit_is_taken_when_nothing_waits() {
        let (queue, answers) = (Queue::new(1_000, None), Answers::default());

        queue.push(write(1, 5_000, &answers));

        assert_eq!(numbers(&queue.next(LIMIT, ONCE)), [1]);
    }

    #[test]
    fn an_actor_is_pending_until_its_last_write_is_settled() {
        let (queue, answers) = (Queue::new(usize::MAX, None), Answers::default());
        queue.push(write(1, 0, &answers));
        queue.push(write(1, 0, &answers));

        drop(queue.next(LIMIT, ONCE));
        queue.settle([ActorNumber(1)]);
        assert!(queue.is_pending(ActorNumber(1)));
        queue.settle([ActorNumber(1)]);

        assert!(!queue.is_pending(ActorNumber(1)));
    }

    #[test]
    fn a_closed_queue_serves_what_waits_and_takes_nothing_more() {
        let (queue, answers) = (Queue::new(usize::MAX, None), Answers::default());
        queue.push(write(1, 0, &answers));

        queue.close();
        queue.push(write(2, 0, &answers));

        assert_eq!(*answers.lock(), [(2, Err(StoreError::Closed))]);
        assert_eq!(numbers(&queue.next(LIMIT, None)), [1]);
        assert!(matches!(queue.next(LIMIT, None), Next::Closed));
    }

    #[test]
    fn writes_are_taken_out_and_readings_stay() {
        let (queue, answers) = (Queue::new(usize::MAX, None), Answers::default());
        queue.push(write(1, 0, &answers));
        queue.push_read(Box::new(|_| ()));

        let writes = queue.take_writes();

        assert_eq!(writes.len(), 1);
        assert!(!queue.is_pending(ActorNumber(1)));
        assert!(matches!(queue.next(LIMIT, ONCE), Next::Read(_)));
    }
}
