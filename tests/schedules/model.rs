//! Random operations, with crashes between, against a model that is only lists.

use bytes::Bytes;
use greenroom::core::schedule::{Dispatch, EverySpec, Retry, RunId};
use greenroom::error::{Error, ErrorCode};
use proptest::prelude::*;

use crate::desk::Desk;

#[derive(Clone, Debug)]
enum Op {
    At {
        delay: i64,
        attempts: Option<i64>,
    },
    Cancel(prop::sample::Index),
    Every {
        name: usize,
        interval: i64,
        attempts: Option<i64>,
    },
    Delete(usize),
    /// Time passes, and what is due is taken.
    Pass(i64),
    /// An attempt ends.
    End {
        which: prop::sample::Index,
        succeeds: bool,
    },
    Revive(prop::sample::Index),
    Forget(prop::sample::Index),
    Crash,
}

fn op() -> impl Strategy<Value = Op> {
    let attempts = || prop::option::of(1_i64..4);
    let index = any::<prop::sample::Index>;
    prop_oneof![
        4 => (-2_000_i64..20_000, attempts()).prop_map(|(delay, attempts)| Op::At { delay, attempts }),
        1 => index().prop_map(Op::Cancel),
        2 => (0..3_usize, 5_000_i64..9_000, attempts())
            .prop_map(|(name, interval, attempts)| Op::Every { name, interval, attempts }),
        1 => (0..3_usize).prop_map(Op::Delete),
        6 => (0_i64..12_000).prop_map(Op::Pass),
        6 => (index(), any::<bool>()).prop_map(|(which, succeeds)| Op::End { which, succeeds }),
        1 => index().prop_map(Op::Revive),
        1 => index().prop_map(Op::Forget),
        2 => Just(Op::Crash),
    ]
}

/// Where a fire stands.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stand {
    Due(i64),
    Runs(RunId),
    Dead,
}

#[derive(Clone, Debug)]
struct Fire {
    /// The id of a one-shot; of a job its name.
    id: String,
    scheduled_at: i64,
    attempt: u32,
    attempts: Option<i64>,
    stand: Stand,
}

#[derive(Clone, Debug)]
struct Job {
    name: String,
    interval: i64,
    trigger_at: i64,
    attempts: Option<i64>,
}

#[derive(Default)]
struct Model {
    shots: Vec<Fire>,
    jobs: Vec<Job>,
    /// The fires of jobs that are not finished, also of jobs that are deleted.
    fires: Vec<Fire>,
    /// How many fires of jobs were given up.
    dead_fires: usize,
}

/// What a dispatch says.
type Told = (String, i64, u32);

fn told(dispatch: &Dispatch) -> Told {
    (dispatch.fire.id.clone(), dispatch.fire.scheduled_at, dispatch.fire.attempt)
}

impl Model {
    /// What is to be taken, by deadline.
    fn take(&mut self, now: i64) -> Vec<Told> {
        let mut taken = Vec::new();
        for fire in self.shots.iter_mut().chain(&mut self.fires) {
            if matches!(fire.stand, Stand::Due(at) if at <= now) {
                fire.attempt += 1;
                taken.push((fire.id.clone(), fire.scheduled_at, fire.attempt));
            }
        }
        for job in &mut self.jobs {
            if job.trigger_at > now {
                continue;
            }
            let scheduled_at = job.trigger_at;
            while job.trigger_at <= now {
                job.trigger_at += job.interval;
            }
            if !self.fires.iter().any(|fire| fire.id == job.name) {
                taken.push((job.name.clone(), scheduled_at, 1));
                let stand = Stand::Due(0);
                let (id, attempts) = (job.name.clone(), job.attempts);
                self.fires.push(Fire { id, scheduled_at, attempt: 1, attempts, stand });
            }
        }
        taken.sort();
        taken
    }

    /// Notes which attempt runs what was taken.
    fn runs(&mut self, dispatch: &Dispatch) {
        let fires = self.shots.iter_mut().chain(&mut self.fires);
        let wanted = |fire: &&mut Fire| fire.id == dispatch.fire.id && fire.stand != Stand::Dead;
        fires.filter(wanted).for_each(|fire| fire.stand = Stand::Runs(dispatch.run));
    }

    /// An attempt ended; `lost` when its generation did.
    fn end(&mut self, run: RunId, succeeds: bool, lost: bool, now: i64) {
        let stands = |fire: &Fire| fire.stand == Stand::Runs(run);
        if let Some(at) = self.shots.iter().position(stands) {
            let next = next(&self.shots[at], succeeds, lost, now);
            match next {
                Some(stand) => self.shots[at].stand = stand,
                None => drop(self.shots.remove(at)),
            }
        } else if let Some(at) = self.fires.iter().position(stands) {
            let mut fire = self.fires.remove(at);
            // The attempts of a job that was deleted end with it.
            match next(&fire, succeeds, false, now).filter(|_| fire.attempts.is_some()) {
                Some(Stand::Dead) => self.dead_fires += 1,
                Some(stand) => {
                    fire.stand = stand;
                    self.fires.push(fire);
                }
                None => {}
            }
        }
    }

    fn crash(&mut self, now: i64) {
        let running = self.shots.iter().chain(&self.fires).filter_map(|fire| match fire.stand {
            Stand::Runs(run) => Some(run),
            _ => None,
        });
        for run in running.collect::<Vec<_>>() {
            self.end(run, false, true, now);
        }
    }
}

/// What becomes of a fire whose attempt ended; `None` when it is gone.
fn next(fire: &Fire, succeeds: bool, lost: bool, now: i64) -> Option<Stand> {
    match fire.attempts {
        _ if succeeds => None,
        None => lost.then_some(Stand::Dead),
        Some(attempts) if i64::from(fire.attempt) >= attempts => Some(Stand::Dead),
        Some(_) => Some(Stand::Due(now + 1_000 * (1 << (fire.attempt - 1)))),
    }
}

fn retry(attempts: Option<i64>) -> Option<Retry> {
    let retry = |max_attempts| Retry { max_attempts, initial_ms: Some(1_000), max_ms: None };
    attempts.map(retry)
}

fn pick<T: Clone>(from: &[T], index: &prop::sample::Index) -> Option<T> {
    (!from.is_empty()).then(|| from[index.index(from.len())].clone())
}

async fn run(ops: Vec<Op>) {
    let mut desk = Desk::new().await;
    let mut model = Model::default();
    let mut runs: Vec<RunId> = Vec::new();
    for op in ops {
        match op {
            Op::At { delay, attempts } => {
                let at = desk.now + delay;
                let id = desk.at(at, retry(attempts)).await;
                let stand = Stand::Due(at);
                model.shots.push(Fire { id, scheduled_at: at, attempt: 0, attempts, stand });
            }
            Op::Cancel(index) => {
                let Some(shot) = pick(&model.shots, &index) else { continue };
                let cancelled = desk.schedules.cancel(&shot.id).unwrap();
                let is_due = matches!(shot.stand, Stand::Due(_));
                assert_eq!(desk.write(cancelled).await, is_due);
                model.shots.retain(|other| !is_due || other.id != shot.id);
            }
            Op::Every { name, interval, attempts } => {
                let name = format!("job {name}");
                let spec = EverySpec {
                    name: name.clone(),
                    interval_ms: interval,
                    action: "tick".to_owned(),
                    args: Bytes::new(),
                    max_history: Some(3),
                    retry: retry(attempts),
                };
                let set = desk.schedules.cron_every(spec, desk.now).unwrap();
                desk.write(set).await;
                let trigger_at = match model.jobs.iter().find(|job| job.name == name) {
                    Some(job) if job.interval == interval => job.trigger_at,
                    _ => desk.now + interval,
                };
                model.jobs.retain(|job| job.name != name);
                model.jobs.push(Job { name, interval, trigger_at, attempts });
            }
            Op::Delete(name) => {
                let name = format!("job {name}");
                let deleted = desk.schedules.cron_delete(&name).unwrap();
                let was_there = model.jobs.iter().any(|job| job.name == name);
                assert_eq!(desk.write(deleted).await, was_there);
                if was_there {
                    model.jobs.retain(|job| job.name != name);
                    model
                        .fires
                        .retain(|fire| fire.id != name || matches!(fire.stand, Stand::Runs(_)));
                    for fire in model.fires.iter_mut().filter(|fire| fire.id == name) {
                        fire.attempts = None;
                    }
                }
            }
            Op::Pass(ms) => {
                desk.now += ms;
                let expected = model.take(desk.now);
                let taken = desk.take().await;
                let mut found: Vec<_> = taken.iter().map(told).collect();
                found.sort();
                assert_eq!(found, expected);
                for dispatch in &taken {
                    model.runs(dispatch);
                    runs.push(dispatch.run);
                }
            }
            Op::End { which, succeeds } => {
                let Some(run) = pick(&runs, &which) else { continue };
                runs.retain(|other| *other != run);
                let error = Error::new(ErrorCode::new("user", "failed"), "it failed");
                let result = if succeeds { Ok(()) } else { Err(&error) };
                let finished = desk.schedules.finish(run, result, desk.now);
                desk.write_ops(finished.ops).await;
                model.end(run, succeeds, false, desk.now);
            }
            Op::Revive(index) => {
                let Some(shot) = pick(&model.shots, &index) else { continue };
                let revived = desk.schedules.dead_retry(&shot.id, desk.now).unwrap();
                let is_dead = shot.stand == Stand::Dead;
                assert_eq!(desk.write(revived).await, is_dead);
                for other in model.shots.iter_mut().filter(|other| is_dead && other.id == shot.id) {
                    (other.stand, other.attempt) = (Stand::Due(desk.now), 0);
                }
            }
            Op::Forget(index) => {
                let Some(shot) = pick(&model.shots, &index) else { continue };
                let forgotten = desk.schedules.dead_delete(&shot.id).unwrap();
                let is_dead = shot.stand == Stand::Dead;
                assert_eq!(desk.write(forgotten).await, is_dead);
                model.shots.retain(|other| !is_dead || other.id != shot.id);
            }
            Op::Crash => {
                desk.crash().await;
                model.crash(desk.now);
                runs.clear();
            }
        }
        compare(&desk, &model);
    }
}

fn compare(desk: &Desk, model: &Model) {
    let mut expected: Vec<_> = model
        .shots
        .iter()
        .filter_map(|shot| match shot.stand {
            Stand::Due(at) => Some((at, shot.id.clone())),
            _ => None,
        })
        .collect();
    expected.sort();
    let list = desk.schedules.list().unwrap();
    let found: Vec<_> = list.into_iter().map(|event| (event.run_at, event.id)).collect();
    assert_eq!(found, expected);

    let mut jobs: Vec<_> =
        model.jobs.iter().map(|job| (job.trigger_at, job.name.clone())).collect();
    jobs.sort();
    let list = desk.schedules.cron_list().unwrap();
    let found: Vec<_> = list.into_iter().map(|job| (job.next_run_at, job.name)).collect();
    assert_eq!(found, jobs);

    let dead = desk.schedules.dead().unwrap();
    let mut found: Vec<_> =
        dead.iter().filter(|letter| letter.name.is_none()).map(|letter| &letter.id).collect();
    let dead_shots = model.shots.iter().filter(|shot| shot.stand == Stand::Dead);
    let mut expected_dead: Vec<_> = dead_shots.map(|shot| &shot.id).collect();
    found.sort();
    expected_dead.sort();
    assert_eq!(found, expected_dead);
    assert_eq!(dead.len() - found.len(), model.dead_fires);

    let retries = model.fires.iter().filter_map(|fire| match fire.stand {
        Stand::Due(at) => Some(at),
        _ => None,
    });
    let all = expected.iter().chain(&jobs).map(|(at, _)| *at).chain(retries);
    assert_eq!(desk.schedules.next_alarm(), all.min());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn schedules_do_what_a_model_of_lists_does_whenever_they_crash(
        ops in prop::collection::vec(op(), 1..60),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(run(ops));
    }
}
