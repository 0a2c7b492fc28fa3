//! How long each step took, kept in an HdrHistogram: percentiles to three digits, in the memory of a few pages.

use hdrhistogram::Histogram;

use crate::clock::ClockKind;
use crate::failure::Failure;
use crate::meter::Meter;
use crate::workload::Measure;

const fn percentile(name: &'static str) -> Measure {
    Measure {
        name,
        unit: "µs",
        higher_is_better: false,
    }
}

/// The median.
pub const P50: Measure = percentile("latency p50");
/// What one step in ten exceeds.
pub const P90: Measure = percentile("latency p90");
/// One in a hundred.
pub const P99: Measure = percentile("latency p99");
/// One in a thousand.
pub const P999: Measure = percentile("latency p99.9");
/// The longest of all.
pub const MAX: Measure = percentile("latency max");

const DIGITS: u8 = 3;
/// An hour, in nanoseconds.
const LONGEST: u64 = 3_600_000_000_000;
const PERCENTILES: [(&Measure, f64); 4] = [(&P50, 50.0), (&P90, 90.0), (&P99, 99.0), (&P999, 99.9)];

/// The times of all steps of one operation.
pub struct Latencies {
    clock: ClockKind,
    histogram: Histogram<u32>,
}

impl Latencies {
    /// None so far.
    pub fn new(clock: ClockKind) -> Result<Self, Failure> {
        let histogram = Histogram::new_with_bounds(1, LONGEST, DIGITS)
            .map_err(|error| Failure::wrong(format!("histogram: {error}")))?;
        Ok(Self { clock, histogram })
    }

    /// Do one step, and note how long it took.
    #[inline]
    pub fn step<T>(&mut self, step: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
        let start = Meter::now(self.clock);
        let done = step()?;
        self.histogram
            .saturating_record(Meter::now(self.clock).saturating_sub(start));
        Ok(done)
    }

    /// Take in what another thread noted.
    pub fn add(&mut self, other: &Self) -> Result<(), Failure> {
        self.histogram
            .add(&other.histogram)
            .map_err(|error| Failure::wrong(format!("histogram: {error}")))
    }

    /// How many steps there were.
    pub fn steps(&self) -> u64 {
        self.histogram.len()
    }

    /// Forget all.
    pub fn clear(&mut self) {
        self.histogram.reset();
    }

    /// Percentile by percentile, in microseconds.
    pub fn told(&self) -> Vec<(&'static str, f64)> {
        let percentiles = PERCENTILES
            .iter()
            .map(|(measure, at)| (measure.name, self.histogram.value_at_percentile(*at)));
        percentiles
            .chain([(MAX.name, self.histogram.max())])
            .map(|(name, value)| (name, value as f64 / 1e3))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_values_to_three_digits() {
        let mut latencies = Latencies::new(ClockKind::Monotonic).unwrap();
        for value in 1..=10_000 {
            latencies.histogram.record(value * 1000).unwrap();
        }
        for ((name, found), wanted) in latencies
            .told()
            .iter()
            .zip([5000.0, 9000.0, 9900.0, 9990.0, 10_000.0])
        {
            assert!(
                (found / wanted - 1.0).abs() < 0.002,
                "{name}: {found} for {wanted}"
            );
        }
    }

    #[test]
    fn steps_of_two_threads_are_those_of_both() {
        let (mut one, mut other) = (
            Latencies::new(ClockKind::Monotonic).unwrap(),
            Latencies::new(ClockKind::Monotonic).unwrap(),
        );
        one.step(|| Ok(())).unwrap();
        other.step(|| Ok(())).unwrap();
        one.add(&other).unwrap();
        assert_eq!(one.steps(), 2);
        one.clear();
        assert_eq!(one.steps(), 0);
    }
}
