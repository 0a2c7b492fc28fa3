//! Tasks that work at the same time, pass by pass, and what that took.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread;

use wire::marks;

use crate::clock::Clock;
use crate::cpus;
use crate::failure::Failure;
use crate::processes;
use crate::shared::{Alone, Shared};

/// What a crew is to be, and to do.
pub struct Asked {
    /// The clock that tasks read.
    pub clock: Clock,
    /// How many; 0: as many as there are CPUs.
    pub tasks: usize,
    /// Threads of one process, or processes.
    pub threads: bool,
    /// Whether each is held on a CPU.
    pub pinned: bool,
    /// Operations of each in a pass.
    pub operations: u64,
    /// Passes that count.
    pub passes: usize,
}

/// One of the tasks, as what it does is made.
pub struct Task {
    /// From 0.
    pub index: usize,
    /// Whether it is a thread of one process with all the others.
    pub thread: bool,
}

/// What all tasks did in one pass that counts.
pub struct Pass {
    /// Nanoseconds that an operation of a task took while all of them worked.
    pub time: f64,
    /// Operations of all of them in a second.
    pub throughput: f64,
    /// Operations that were done until the last had finished its own.
    pub done: u64,
}

/// Tasks that start together. Each does as many operations as a pass has, and more of them until the last has
/// finished: while a pass is timed, all work, and one that gets what others wait for is no loss. The first pass does
/// not count.
///
/// A mark for the plugins surrounds each pass that counts, and one is at its end.
pub struct Crew {
    /// How many there are.
    pub tasks: usize,
    /// The clock that they read.
    pub clock: Clock,
    threads: bool,
    places: Option<Vec<usize>>,
    operations: u64,
    passes: usize,
    arrived: Shared<Alone<AtomicU32>>,
    finished: Shared<Alone<AtomicU32>>,
    began: Shared<AtomicU64>,
    ended: Shared<AtomicU64>,
    done: Shared<AtomicU64>,
    /// What was measured beside time: name, values.
    pub also: Vec<(&'static str, Vec<f64>)>,
}

impl Crew {
    /// As it is asked for. Without a number there is a task for each CPU that this program may use.
    pub fn new(asked: &Asked) -> Result<Self, Failure> {
        let allowed = cpus::allowed()?;
        let tasks = if asked.tasks == 0 {
            allowed.len()
        } else {
            asked.tasks
        };
        Ok(Self {
            tasks,
            clock: asked.clock,
            threads: asked.threads,
            places: asked.pinned.then_some(allowed),
            operations: asked.operations,
            passes: asked.passes,
            arrived: Shared::new(1)?,
            finished: Shared::new(1)?,
            began: Shared::new(tasks * (asked.passes + 1))?,
            ended: Shared::new(tasks * (asked.passes + 1))?,
            done: Shared::new(tasks * (asked.passes + 1))?,
            also: Vec::new(),
        })
    }

    /// Operations that each task does and is timed for in all passes, the first included.
    pub fn each(&self) -> usize {
        self.operations as usize * (self.passes + 1)
    }

    /// Have all tasks do what `make` gives each of them. Yields how many operations were done in all, those that
    /// do not count included. A task that fails ends all.
    pub fn measure<M, O>(&mut self, make: M) -> Result<u64, Failure>
    where
        M: Fn(&Task) -> Result<O, Failure> + Sync,
        O: FnMut() -> Result<(), Failure>,
    {
        let crew = &*self;
        let work = |index: usize| crew.work(index, &make);
        if crew.threads {
            thread::scope(|scope| {
                for index in 0..crew.tasks {
                    scope.spawn(move || {
                        work(index).unwrap_or_else(|failure| processes::end(&failure))
                    });
                }
            });
        } else {
            processes::all(crew.tasks, work)?;
        }
        Ok(self
            .done
            .iter()
            .map(|done| done.load(Ordering::SeqCst))
            .sum())
    }

    fn work<M, O>(&self, index: usize, make: &M) -> Result<(), Failure>
    where
        M: Fn(&Task) -> Result<O, Failure>,
        O: FnMut() -> Result<(), Failure>,
    {
        if let Some(places) = &self.places {
            cpus::pin(places[index % places.len()])?;
        }
        let task = Task {
            index,
            thread: self.threads,
        };
        let mut operation = make(&task)?;
        (0..=self.passes).try_for_each(|pass| self.pass(index, pass, &mut operation))
    }

    fn pass<O: FnMut() -> Result<(), Failure>>(
        &self,
        index: usize,
        pass: usize,
        operation: &mut O,
    ) -> Result<(), Failure> {
        let all = (self.tasks * (pass + 1)) as u32;
        self.meet(all);
        let marked = index == 0 && pass > 0;
        if marked {
            marks::region_begin();
        }
        let began = self.clock.now();
        for _ in 0..self.operations {
            operation()?;
        }
        self.finished[0].0.fetch_add(1, Ordering::SeqCst);
        let mut done = self.operations;
        while self.finished[0].0.load(Ordering::Relaxed) < all {
            operation()?;
            done += 1;
        }
        let ended = self.clock.now();
        if marked {
            marks::operation();
            marks::region_end();
        }
        let at = index * (self.passes + 1) + pass;
        self.began[at].store(began, Ordering::SeqCst);
        self.ended[at].store(ended, Ordering::SeqCst);
        self.done[at].store(done, Ordering::SeqCst);
        Ok(())
    }

    /// Wait until all are there.
    fn meet(&self, all: u32) {
        self.arrived[0].0.fetch_add(1, Ordering::SeqCst);
        while self.arrived[0].0.load(Ordering::SeqCst) < all {
            thread::yield_now();
        }
    }

    /// Each pass that counts. Raises a failure where one took no time.
    pub fn counted(&self) -> Result<Vec<Pass>, Failure> {
        (1..=self.passes)
            .map(|pass| self.counted_pass(pass))
            .collect()
    }

    fn counted_pass(&self, pass: usize) -> Result<Pass, Failure> {
        let of_tasks = |values: &Shared<AtomicU64>| -> Vec<u64> {
            let places = (0..self.tasks).map(|index| index * (self.passes + 1) + pass);
            places.map(|at| values[at].load(Ordering::SeqCst)).collect()
        };
        let done: u64 = of_tasks(&self.done).iter().sum();
        let began = of_tasks(&self.began).into_iter().min().unwrap_or(0);
        let ended = of_tasks(&self.ended).into_iter().max().unwrap_or(0);
        if ended <= began {
            return Err(Failure::wrong(format!("pass {pass} took no time at all")));
        }
        let rate = done as f64 / (ended - began) as f64;
        Ok(Pass {
            time: self.tasks as f64 / rate,
            throughput: rate * 1e9,
            done,
        })
    }
}
