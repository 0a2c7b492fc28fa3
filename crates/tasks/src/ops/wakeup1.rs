//! Tasks that wake workers, and how long it takes until those run.

use std::hint::black_box;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::arguments::{Arguments, Workload};
use crate::clock::Clock;
use crate::crew::{Crew, Task};
use crate::failure::{must, Failure};
use crate::futexes::{wait, wake};
use crate::partners::Companion;
use crate::percentiles::percentile;
use crate::processes;
use crate::shared::{Alone, Shared};
use crate::workload::{number, Domain, Parameter, THREADS_FIRST};

const P50: &str = "wakeup p50";
const P90: &str = "wakeup p90";
const P99: &str = "wakeup p99";
const MAX: &str = "wakeup max";

pub const WORKLOAD: Workload = Workload {
    name: "wakeup1",
    summary: "tasks that wake workers, and how long it takes until those run",
    does: "Wakes each of its workers, which sleep in a futex, and sleeps until all of them have worked and the last \
           has woken it. A worker notes how long it took from before it was woken until it runs, and works for \
           `work` steps. `wakeup p50`, `p90`, `p99` and `max` are of all workers' wake-ups in the passes that count. \
           Every worker must have run as often as it was woken. Unless they are pinned, tasks and workers go where \
           the scheduler puts them.",
    system_calls: &["futex (wake, each worker)", "futex (wait)", "futex (wait, a worker)", "futex (wake, the last worker)"],
    metric: "round",
    also: &[(P50, "ns"), (P90, "ns"), (P99, "ns"), (MAX, "ns")],
    parameters: &[
        number("workers", "workers of each task", 2, 1, 64),
        number("work", "steps that a worker works for, of some four instructions", 2_500, 0, 10_000_000),
        Parameter {
            name: "pinned",
            summary: "whether each task is held on a CPU with its workers, by turns, or all go where the scheduler puts them",
            domain: Domain::Choice(&["no", "yes"]),
        },
    ],
    kinds: THREADS_FIRST,
    source: "schbench, with its message threads and workers, in place of its requests a loop",
    operations: 60,
    run,
};

/// What a worker's word says at the end; no round has this number.
const STOP: u32 = u32::MAX;

/// What tasks and workers share, for all of them.
struct Floor {
    clock: Clock,
    workers: usize,
    work: u32,
    /// Wake-ups that each worker notes.
    noted: usize,
    /// Of each task: how many of its workers are still at work, then the round of each worker.
    words: Shared<Alone<AtomicU32>>,
    woken: Shared<Alone<AtomicU64>>,
    latencies: Shared<AtomicU64>,
}

fn run(arguments: &Arguments, crew: &mut Crew) -> Result<(), Failure> {
    let (workers, noted) = (arguments.size("workers"), crew.each());
    let of_all = crew.tasks * workers;
    let floor: &'static Floor = Box::leak(Box::new(Floor {
        clock: crew.clock,
        workers,
        work: arguments.size("work") as u32,
        noted,
        words: Shared::new(crew.tasks * (1 + workers))?,
        woken: Shared::new(of_all)?,
        latencies: Shared::new(of_all * noted)?,
    }));
    crew.measure(|task| {
        let mut message = Message::new(floor, task)?;
        Ok(move || message.round())
    })?;
    let discarded = arguments.size("operations");
    let mut found: Vec<u64> = (0..of_all)
        .flat_map(|worker| &floor.latencies[worker * noted + discarded..(worker + 1) * noted])
        .map(|latency| latency.load(Ordering::SeqCst))
        .collect();
    must(!found.contains(&0), "a worker did not run as often as it was woken")?;
    found.sort_unstable();
    for (name, share) in [(P50, 0.5), (P90, 0.9), (P99, 0.99), (MAX, 1.0)] {
        crew.also.push((name, vec![percentile(&found, share)]));
    }
    Ok(())
}

/// A task, with its workers.
struct Message {
    floor: &'static Floor,
    index: usize,
    round: u32,
    _workers: Vec<Companion>,
}

impl Message {
    fn new(floor: &'static Floor, task: &Task) -> Result<Self, Failure> {
        let index = task.index;
        let workers = (0..floor.workers).map(|worker| {
            let work = move || floor.worker(index, worker).unwrap_or_else(|failure| processes::end(&failure));
            Companion::start(task.thread, work)
        });
        Ok(Self { floor, index, round: 0, _workers: workers.collect::<Result<_, _>>()? })
    }

    fn round(&mut self) -> Result<(), Failure> {
        self.round += 1;
        let left = self.floor.word(self.index, 0);
        left.store(self.floor.workers as u32, Ordering::SeqCst);
        for worker in 0..self.floor.workers {
            self.floor.woken[self.index * self.floor.workers + worker].0.store(self.floor.clock.now(), Ordering::SeqCst);
            self.tell(worker, self.round)?;
        }
        loop {
            match left.load(Ordering::SeqCst) {
                0 => return Ok(()),
                some => wait(left, some)?,
            };
        }
    }

    fn tell(&self, worker: usize, what: u32) -> Result<(), Failure> {
        let word = self.floor.word(self.index, 1 + worker);
        word.store(what, Ordering::SeqCst);
        wake(word).map(|_| ())
    }
}

impl Drop for Message {
    fn drop(&mut self) {
        for worker in 0..self.floor.workers {
            // Threads are waited for; processes are ended anyway.
            let _ = self.tell(worker, STOP);
        }
    }
}

impl Floor {
    fn word(&self, task: usize, place: usize) -> &AtomicU32 {
        &self.words[task * (1 + self.workers) + place].0
    }

    /// At least 1: a zero is a wake-up that did not come. Clocks of two CPUs may be a round apart.
    fn since(&self, woken: &AtomicU64) -> u64 {
        self.clock.now().saturating_sub(woken.load(Ordering::SeqCst)).max(1)
    }

    fn worker(&self, task: usize, worker: usize) -> Result<(), Failure> {
        let (word, left) = (self.word(task, 1 + worker), self.word(task, 0));
        let all = task * self.workers + worker;
        for round in 1.. {
            loop {
                match word.load(Ordering::SeqCst) {
                    STOP => return Ok(()),
                    now if now == round => break,
                    before => wait(word, before)?,
                };
            }
            let latency = self.since(&self.woken[all].0);
            if round as usize <= self.noted {
                self.latencies[all * self.noted + round as usize - 1].store(latency, Ordering::SeqCst);
            }
            for step in 0..self.work {
                black_box(step);
            }
            if left.fetch_sub(1, Ordering::SeqCst) == 1 {
                wake(left)?;
            }
        }
        Ok(())
    }
}
