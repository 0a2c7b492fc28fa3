//! Measures operations that are made of many steps of input and output: their cost, what the kernel counted, the rate
//! and the latencies.

use std::cell::RefCell;
use std::path::Path;

use crate::clock::ClockKind;
use crate::failure::Failure;
use crate::io_counts::{self, Counts};
use crate::latency::{self, Latencies};
use crate::meter::Meter;
use crate::workload::Measure;

/// What every workload of input and output measures beside its cost.
pub const MEASURES: &[Measure] = &[
    io_counts::READ,
    io_counts::REQUESTS,
    io_counts::READ_SIZE,
    io_counts::REFAULTS,
    io_counts::ACTIVATIONS,
    io_counts::EVICTIONS,
    io_counts::WRITTEN,
    io_counts::SWITCHES,
    io_counts::ALLOCATIONS,
    io_counts::RATE,
    latency::P50,
    latency::P90,
    latency::P99,
    latency::P999,
    latency::MAX,
];

struct State {
    clock: ClockKind,
    counts: Counts,
    latencies: Latencies,
    under_way: bool,
    nanoseconds: u64,
    told: Vec<(&'static str, f64)>,
}

impl State {
    /// The last operation is over, if there was one: note what it did.
    fn end(&mut self) -> Result<(), Failure> {
        if !std::mem::take(&mut self.under_way) {
            return Ok(());
        }
        self.counts.end()?;
        let seconds = self.nanoseconds as f64 / 1e9;
        self.told.push((
            io_counts::RATE.name,
            self.latencies.steps() as f64 / seconds.max(1e-9),
        ));
        self.told.extend(self.latencies.told());
        Ok(())
    }

    fn begin(&mut self) -> Result<(), Failure> {
        self.latencies.clear();
        self.under_way = true;
        self.counts.begin()
    }

    fn timed(
        &mut self,
        operation: impl FnOnce(&mut Latencies) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let start = Meter::now(self.clock);
        operation(&mut self.latencies)?;
        self.nanoseconds = Meter::now(self.clock) - start;
        Ok(())
    }
}

/// Measure operations on files in `directory`: for each, `prepare` (not measured; it may also look whether the last one
/// did what it should), then `operation`. At the end `prepare` is called once more, so that the last is looked at too.
pub fn measure<T>(
    meter: &mut Meter,
    directory: &Path,
    clock: ClockKind,
    mut prepare: impl FnMut() -> Result<T, Failure>,
    mut operation: impl FnMut(T, &mut Latencies) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let state = RefCell::new(State {
        clock,
        counts: Counts::new(directory),
        latencies: Latencies::new(clock)?,
        under_way: false,
        nanoseconds: 0,
        told: Vec::new(),
    });
    meter.repeat_prepared(
        || {
            state.borrow_mut().end()?;
            let prepared = prepare()?;
            state.borrow_mut().begin()?;
            Ok(prepared)
        },
        |prepared| {
            state
                .borrow_mut()
                .timed(|latencies| operation(prepared, latencies))
        },
    )?;
    let mut state = state.into_inner();
    state.end()?;
    prepare()?;
    state.counts.record(meter);
    for (name, value) in state.told {
        meter.record(name, value);
    }
    Ok(())
}
