//! What QEMU's command line asks for: `-plugin parallel.so,quantum=100,seed=0,…`.

use alloc::format;
use alloc::string::{String, ToString};

/// A round's length, in nanoseconds: below, CPUs are switched more than they run; above, time is no time any more.
const QUANTA: core::ops::RangeInclusive<i64> = 25..=100_000;

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arguments {
    /// A round's length, in nanoseconds.
    pub quantum: i64,
    /// Of the clocks' first offsets, and of who is first in each round.
    pub seed: u64,
    /// The guest's time when it starts, in nanoseconds.
    pub clock: i64,
    /// Nanoseconds of the guest's time after which QEMU ends; 0: it does not.
    pub limit: i64,
    /// The file that counts are written to; empty: none.
    pub out: String,
    /// Nanoseconds that a cache line takes from one CPU to another, of locked instructions; 0: none.
    pub transfer: i64,
    /// The kernel's symbols, to count by function; empty: nothing is counted so.
    pub symbols: String,
}

impl Arguments {
    /// Reads them; an error names what is wrong.
    pub fn read<'a>(words: impl Iterator<Item = &'a str>) -> Result<Self, String> {
        let mut read = Self {
            quantum: 100,
            seed: 0,
            clock: 0,
            limit: 0,
            out: String::new(),
            transfer: 0,
            symbols: String::new(),
        };
        for word in words {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            match name {
                "quantum" => read.quantum = number(name, value)?,
                "seed" => read.seed = number(name, value)?,
                "clock" => read.clock = number(name, value)?,
                "limit" => read.limit = number(name, value)?,
                "transfer" => read.transfer = number(name, value)?,
                "out" => read.out = value.to_string(),
                "symbols" => read.symbols = value.to_string(),
                _ => return Err(format!("there is no argument {name}")),
            }
        }
        read.checked()
    }

    fn checked(self) -> Result<Self, String> {
        if !QUANTA.contains(&self.quantum) {
            let (least, most) = (QUANTA.start(), QUANTA.end());
            return Err(format!(
                "quantum={}: allowed are {least} to {most} (nanoseconds)",
                self.quantum
            ));
        }
        match self.clock < 0 || self.limit < 0 || self.transfer < 0 {
            true => Err("clock, limit and transfer are at least 0".into()),
            false => Ok(self),
        }
    }
}

fn number<T: core::str::FromStr>(name: &str, value: &str) -> Result<T, String> {
    value
        .parse()
        .map_err(|_| format!("{name}={value}: a whole number is wanted"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Result<Arguments, String> {
        Arguments::read(words.iter().copied())
    }

    #[test]
    fn what_is_not_asked_for_has_its_default() {
        let read = read(&["seed=7", "out=/proc/self/fd/9"]).unwrap();
        assert_eq!(
            (read.quantum, read.seed, read.clock, read.limit),
            (100, 7, 0, 0)
        );
        assert_eq!(read.out, "/proc/self/fd/9");
    }

    #[test]
    fn what_cannot_be_is_told_with_what_can() {
        let table = [
            ("quantum=24", "allowed are 25 to 100000"),
            ("quantum=1us", "quantum=1us: a whole number"),
            ("quanta=5", "no argument quanta"),
            ("clock=-1", "at least 0"),
            ("transfer=-1", "at least 0"),
        ];
        for (word, wanted) in table {
            let problem = read(&[word]).unwrap_err();
            assert!(problem.contains(wanted), "{word}: {problem}");
        }
    }
}
