//! The twelve tests of UnixBench's index, to its specification, as processes of this program.

mod dhrystone;
mod fstime;
mod kernel;
mod pass;
mod shell;
mod whetstone;

pub use pass::{in_copies, Pass, Passed};

use crate::failure::Failure;

/// One test.
pub struct Test {
    /// UnixBench's key for it.
    pub name: &'static str,
    /// The score of what has an index of 10: a SPARCstation 20-61. Loops a second, MWIPS, KiB a second or loops a
    /// minute.
    pub baseline: f64,
    /// How long a pass is.
    pub seconds: f64,
    /// How many passes there are.
    pub passes: usize,
    /// A count is for so many seconds; 0 where it is a rate already.
    pub timebase: f64,
    /// One pass.
    pub run: fn(&Pass) -> Result<Passed, Failure>,
}

macro_rules! test {
    ($name:literal $baseline:literal $seconds:literal x $passes:literal / $timebase:literal $run:path) => {
        Test {
            name: $name,
            baseline: $baseline,
            seconds: $seconds,
            passes: $passes,
            timebase: $timebase,
            run: $run,
        }
    };
}

/// UnixBench 5.1.3's table: name, baseline, seconds x passes / timebase.
pub const TESTS: [Test; 12] = [
    test!("dhry2reg" 116700.0 10.0 x 10 / 1.0 dhrystone::run),
    test!("whetstone-double" 55.0 10.0 x 10 / 0.0 whetstone::run),
    test!("execl" 43.0 30.0 x 3 / 1.0 kernel::execl),
    test!("fstime" 3960.0 30.0 x 3 / 0.0 fstime::fstime),
    test!("fsbuffer" 1655.0 30.0 x 3 / 0.0 fstime::fsbuffer),
    test!("fsdisk" 5800.0 30.0 x 3 / 0.0 fstime::fsdisk),
    test!("pipe" 12440.0 10.0 x 10 / 1.0 kernel::pipe_throughput),
    test!("context1" 4000.0 10.0 x 10 / 1.0 kernel::context1),
    test!("spawn" 126.0 30.0 x 3 / 1.0 kernel::spawn),
    test!("shell1" 42.4 60.0 x 3 / 60.0 shell::shell1),
    test!("shell8" 6.0 60.0 x 3 / 60.0 shell::shell8),
    test!("syscall" 15000.0 10.0 x 10 / 1.0 kernel::syscall),
];

/// A test's score: of its passes the lowest third is dropped, the geometric mean is taken of the others (UnixBench's
/// `Run`, combinePassResults).
pub fn score(test: &Test, passes: &[Passed]) -> f64 {
    let mut sorted = passes.to_vec();
    sorted.sort_by(|a, b| a.count.total_cmp(&b.count));
    let kept = &sorted[passes.len() / 3..];
    let value = |pass: &Passed| match test.timebase {
        0.0 => pass.count,
        timebase => pass.count / (pass.seconds / timebase),
    };
    geometric_mean(kept.iter().map(value))
}

/// Ten times the geometric mean of score over baseline.
pub fn index(scores: impl Iterator<Item = (&'static Test, f64)>) -> f64 {
    10.0 * geometric_mean(scores.map(|(test, score)| score / test.baseline))
}

fn geometric_mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| {
        (sum + value.ln(), count + 1.0)
    });
    (sum / count).exp()
}

/// What this program does where a test executes it: `--unixbench NAME ARGUMENT…`.
pub fn executed(words: &[String]) -> Result<(), Failure> {
    let unknown = || {
        Failure::wrong(format!(
            "--unixbench {}: there is no such program",
            words.join(" ")
        ))
    };
    let (name, arguments) = words.split_first().ok_or_else(unknown)?;
    if let ("execl", [clock, count, until]) = (name.as_str(), arguments) {
        let number = |text: &String| text.parse().map_err(|_| unknown());
        return kernel::execl_again(clock, number(count)?, number(until)?);
    }
    shell::run(name, arguments).unwrap_or_else(|| Err(unknown()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passes(counts: &[f64]) -> Vec<Passed> {
        counts
            .iter()
            .map(|count| Passed {
                count: *count,
                seconds: 10.0,
            })
            .collect()
    }

    #[test]
    fn the_lowest_third_is_dropped() {
        let ten = passes(&[
            9.0, 100.0, 100.0, 1.0, 100.0, 100.0, 5.0, 100.0, 100.0, 100.0,
        ]);
        assert!((score(&TESTS[0], &ten) - 10.0).abs() < 1e-9);
        assert!((score(&TESTS[0], &passes(&[50.0, 50.0])) - 5.0).abs() < 1e-9);
    }

    #[test]
    fn a_rate_is_a_score_as_it_is_and_minutes_are_minutes() {
        assert!((score(&TESTS[3], &passes(&[7.0])) - 7.0).abs() < 1e-9);
        assert!((score(&TESTS[9], &passes(&[7.0])) - 42.0).abs() < 1e-9);
    }

    #[test]
    fn the_baseline_has_an_index_of_ten() {
        let scores = TESTS.iter().map(|test| (test, test.baseline));
        assert!((index(scores) - 10.0).abs() < 1e-9);
    }
}
