//! Times operations one by one, and makes the report.

use core::arch::asm;
use std::hint::black_box;
use std::thread;
use std::time::Duration;

use serde_json::{json, Value};
use wire::marks;

use crate::clock::{Clock, ClockKind, Monotonic, Tsc};
use crate::failure::Failure;
use crate::memory::Numbers;
use crate::statistics::Statistics;
use crate::workload::Measure;

const EMPTY_OPERATIONS: usize = 101;
/// Several of RCU's grace periods, at the 250 ticks a second of most distributions.
const PAUSE: Duration = Duration::from_millis(20);

/// What a meter has to know of the workload that it times, and of what was asked for.
pub trait Timed {
    /// The workload's name.
    fn name(&self) -> &'static str;
    /// The metric's name: what one operation is.
    fn metric(&self) -> &'static str;
    /// What is measured beside that.
    fn also(&self) -> &'static [Measure];
    /// Passes that are discarded before those that count.
    fn discarded(&self) -> usize;
    /// Passes that count.
    fn passes(&self) -> usize;
    /// Operations in one pass.
    fn operations(&self) -> usize;
    /// The clock that operations are timed with.
    fn clock(&self) -> ClockKind;
    /// Whether the time of every operation is reported.
    fn vector(&self) -> bool;
}

/// What a workload hands its operations to. It runs them in passes: first some that are discarded (after boot and
/// after a restore the kernel has deferred work to do and caches to fill), then those that count.
///
/// An operation's time is the difference between two readings of the clock, less the median difference with nothing
/// in between. Marks surround what counts: a region's begin, one mark after each operation, the region's end.
pub struct Meter {
    clock: ClockKind,
    discarded: usize,
    passes: usize,
    per_pass: usize,
    times: Numbers,
    filled: usize,
    overhead: u64,
    bundle: usize,
    also: Vec<(&'static Measure, Vec<f64>)>,
}

impl Meter {
    /// A meter for as many passes and operations as are asked for.
    pub fn new(timed: &impl Timed) -> Result<Self, Failure> {
        let (passes, per_pass) = (timed.passes(), timed.operations());
        let times = Numbers::new((passes * per_pass).max(EMPTY_OPERATIONS))?;
        Ok(Self {
            clock: timed.clock(),
            discarded: timed.discarded(),
            passes,
            per_pass,
            times,
            filled: 0,
            overhead: 0,
            bundle: 1,
            also: (timed.also().iter())
                .map(|measure| (measure, Vec::new()))
                .collect(),
        })
    }

    /// How many operations there will be, with those of the passes that are discarded.
    pub fn planned(&self) -> usize {
        (self.discarded + self.passes) * self.per_pass
    }

    /// Run `operation` back to back, as often as every pass needs, and time each.
    pub fn repeat(
        &mut self,
        operation: impl FnMut() -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        match self.clock {
            ClockKind::Tsc => self.repeat_by::<Tsc, _>(operation),
            ClockKind::Monotonic => self.repeat_by::<Monotonic, _>(operation),
        }
    }

    /// Like `repeat`, with a pause before each operation in exact mode.
    pub fn repeat_settled(
        &mut self,
        mut operation: impl FnMut() -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.repeat_prepared(|| Ok(()), |()| operation())
    }

    /// Like `repeat_settled`, with something before the pause that is not timed, and that yields what is worked on.
    ///
    /// In the pause the kernel finishes what it has put off (memory freed after an RCU grace period, above all).
    /// Without it the same operation costs more or less by what happens to be in the allocator's caches. In exact mode
    /// idle time is skipped and costs next to nothing; on hardware a pause would cool the caches, and there is none.
    pub fn repeat_prepared<T>(
        &mut self,
        mut prepare: impl FnMut() -> Result<T, Failure>,
        operation: impl FnMut(T) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let pause = self.clock == ClockKind::Tsc;
        let prepare = || {
            let prepared = prepare();
            if pause {
                thread::sleep(PAUSE);
            }
            prepared
        };
        match self.clock {
            ClockKind::Tsc => self.repeat_prepared_by::<Tsc, T, _, _>(prepare, operation),
            ClockKind::Monotonic => {
                self.repeat_prepared_by::<Monotonic, T, _, _>(prepare, operation)
            }
        }
    }

    fn repeat_by<C: Clock, F: FnMut() -> Result<(), Failure>>(
        &mut self,
        mut operation: F,
    ) -> Result<(), Failure> {
        let mut nothing = || {
            black_box(());
            Ok(())
        };
        // Who started this program has things to do, too, and on one CPU it does them now or in the middle.
        if self.clock == ClockKind::Tsc {
            thread::sleep(PAUSE);
        }
        pass::<C, false, _>(&mut self.times[..EMPTY_OPERATIONS], &mut nothing)?;
        self.calibrated();
        for _ in 0..self.discarded {
            pass::<C, false, _>(&mut self.times[..self.per_pass], &mut operation)?;
        }
        for number in 0..self.passes {
            let from = number * self.per_pass;
            pass::<C, true, _>(&mut self.times[from..from + self.per_pass], &mut operation)?;
            self.filled += self.per_pass;
        }
        Ok(())
    }

    fn repeat_prepared_by<C: Clock, T, P, F>(
        &mut self,
        mut prepare: P,
        mut operation: F,
    ) -> Result<(), Failure>
    where
        P: FnMut() -> Result<T, Failure>,
        F: FnMut(T) -> Result<(), Failure>,
    {
        for number in 0..EMPTY_OPERATIONS {
            let nothing = |()| {
                black_box(());
                Ok(())
            };
            self.times[number] = single::<C, false, _, _>((), nothing)?;
        }
        self.calibrated();
        for _ in 0..self.discarded * self.per_pass {
            single::<C, false, _, _>(prepare()?, &mut operation)?;
        }
        for number in 0..self.passes * self.per_pass {
            self.times[number] = single::<C, true, _, _>(prepare()?, &mut operation)?;
            self.filled += 1;
        }
        Ok(())
    }

    fn calibrated(&mut self) {
        let empty = &mut self.times[..EMPTY_OPERATIONS];
        empty.sort_unstable();
        self.overhead = empty[EMPTY_OPERATIONS / 2];
    }

    /// Take `cost` more off each time measured: the operation did something that is not its own work.
    pub fn subtract(&mut self, cost: u64) {
        self.overhead += cost;
    }

    /// Divide each time measured by `size`: what was timed were so many operations in a row.
    pub fn bundle(&mut self, size: usize) {
        self.bundle = size;
    }

    /// The clock that operations are timed with, for what an operation times within itself: in nanoseconds, and in
    /// exact mode in instructions, of which the guest's clock has one a nanosecond (idle time included).
    pub fn now(clock: ClockKind) -> u64 {
        match clock {
            ClockKind::Tsc => Tsc::now(),
            ClockKind::Monotonic => Monotonic::now(),
        }
    }

    /// What one operation measured beside its cost; once an operation, those that are discarded too, or
    /// never.
    pub fn record(&mut self, name: &str, value: f64) {
        let found = self.also.iter_mut().find(|(also, _)| also.name == name);
        found
            .expect("a workload records only what it declares")
            .1
            .push(value);
    }

    /// The times measured so far, in order, less the overhead.
    fn times(&self) -> Vec<f64> {
        let own = self.times[..self.filled]
            .iter()
            .map(|time| time.saturating_sub(self.overhead));
        own.map(|time| time as f64 / self.bundle as f64).collect()
    }

    /// The report that `work` prints.
    pub fn report(&self, timed: &impl Timed) -> Value {
        let times = self.times();
        let statistics = Statistics::of(&times);
        let mut metric = json!({
            "name": timed.metric(),
            "unit": self.clock.unit(),
            "direction": "lower",
            "operations": statistics.operations,
            "minimum": statistics.minimum,
            "median": statistics.median,
            "mean": statistics.mean,
        });
        if timed.vector() {
            metric["vector"] = json!(times);
        }
        let mut metrics = vec![metric];
        let recorded = self.also.iter().filter(|(_, values)| !values.is_empty());
        metrics.extend(recorded.map(|also| self.described(also)));
        json!({
            "workload": timed.name(),
            "clock": self.clock.name(),
            "overhead": self.overhead,
            "bundle": self.bundle,
            "metrics": metrics,
            "checks": self.planned(),
        })
    }

    /// A metric beside the first: of the operations that count, which are the last.
    fn described(&self, (also, values): &(&Measure, Vec<f64>)) -> Value {
        let counted = &values[values.len().saturating_sub(self.filled)..];
        let statistics = Statistics::of(counted);
        json!({
            "name": also.name,
            "unit": also.unit,
            "direction": also.direction(),
            "operations": statistics.operations,
            "minimum": statistics.minimum,
            "median": statistics.median,
            "mean": statistics.mean,
        })
    }
}

/// One reading of the clock between two operations: the fewest instructions that are not the operation's.
#[inline(never)]
fn pass<C: Clock, const MARKED: bool, F>(
    times: &mut [u64],
    operation: &mut F,
) -> Result<(), Failure>
where
    F: FnMut() -> Result<(), Failure>,
{
    if MARKED {
        marks::region_begin();
    }
    let mut last = C::now();
    for time in times {
        operation()?;
        if MARKED {
            marks::operation();
        } else {
            no_mark();
        }
        let now = C::now();
        *time = now - last;
        last = now;
    }
    if MARKED {
        marks::region_end();
    }
    Ok(())
}

#[inline(never)]
fn single<C: Clock, const MARKED: bool, T, F>(subject: T, mut operation: F) -> Result<u64, Failure>
where
    F: FnMut(T) -> Result<(), Failure>,
{
    if MARKED {
        marks::region_begin();
    }
    let start = C::now();
    operation(subject)?;
    if MARKED {
        marks::operation();
    } else {
        no_mark();
    }
    let time = C::now() - start;
    if MARKED {
        marks::region_end();
    }
    Ok(time)
}

/// Costs what a mark costs, and means nothing.
#[inline(always)]
fn no_mark() {
    // SAFETY: a NOP.
    unsafe { asm!("nop", options(nostack, preserves_flags)) }
}
