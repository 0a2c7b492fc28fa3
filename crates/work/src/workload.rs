//! What a workload declares about itself: one constant in one file of `src/ops`.

use crate::arguments::Arguments;
use crate::failure::Failure;
use crate::meter::Meter;

/// A built-in workload: its description, and the function that runs it.
pub struct Workload {
    /// What people type.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// One operation, step by step, and what is checked.
    pub does: &'static str,
    /// The system calls of one operation, in order.
    pub system_calls: &'static [&'static str],
    /// The metric's name: what one operation is.
    pub metric: &'static str,
    /// What it measures beside that.
    pub also: &'static [Measure],
    /// What can be set, apart from the number of operations and passes.
    pub parameters: &'static [Parameter],
    /// Where the operation comes from.
    pub source: &'static str,
    /// Operations in one pass, by default.
    pub operations: i64,
    /// Passes that count, by default.
    pub passes: i64,
    /// Passes before them that are discarded.
    pub discarded: usize,
    /// Whether it uses every CPU; all others are held on one.
    pub spreads: bool,
    /// Whether the layout of its address space is a part of its work: then it runs in the clean room.
    pub fixed_layout: bool,
    /// Measures the operations with the meter.
    pub run: fn(&Arguments, &mut Meter) -> Result<(), Failure>,
}

/// One thing that is measured beside what an operation costs: a rate, for one.
pub struct Measure {
    /// The metric's name.
    pub name: &'static str,
    /// Its unit; a rate's time is the guest's own in exact mode.
    pub unit: &'static str,
    /// Whether more of it is better.
    pub higher_is_better: bool,
}

impl Measure {
    /// `higher` or `lower`: which is better.
    pub fn direction(&self) -> &'static str {
        if self.higher_is_better {
            "higher"
        } else {
            "lower"
        }
    }
}

/// One thing that can be set.
pub struct Parameter {
    /// `--name`
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// What it may be, and what it is when it is not given.
    pub domain: Domain,
}

/// What a parameter may be.
#[derive(Clone, Copy)]
pub enum Domain {
    /// A whole number.
    Number {
        /// When it is not given.
        default: i64,
        /// The least.
        minimum: i64,
        /// The most.
        maximum: i64,
    },
    /// One of a few words.
    Choice {
        /// When it is not given.
        default: &'static str,
        /// All of them.
        choices: &'static [&'static str],
    },
    /// A directory's path.
    Directory {
        /// When it is not given.
        default: &'static str,
    },
}

/// The parameter of the workloads that need a file.
pub const DIRECTORY: Parameter = Parameter {
    name: "path",
    summary: "directory in which the files are made, and removed at the end",
    domain: Domain::Directory { default: "/tmp" },
};

/// The `cache` of a workload that reads files: what is left of them in the page cache.
pub const CACHE: Parameter = Parameter {
    name: "cache",
    summary: "whether the file's pages are dropped from the page cache before each operation",
    domain: Domain::Choice {
        default: COLD,
        choices: &[COLD, "kept"],
    },
};

/// They are dropped.
pub const COLD: &str = "cold";

/// The parameter of the workloads that draw random numbers.
pub const SEED: Parameter = number("seed", "of the random numbers", 1, 0, 1_000_000_000);

/// The parameter of the workloads that ask for some things more often than for others.
pub const EXPONENT: Parameter = number(
    "exponent",
    "hundredths of the exponent of Zipf's law: how popular the popular ones are; 0: all are alike",
    80,
    0,
    500,
);

/// A parameter that is a whole number.
pub const fn number(
    name: &'static str,
    summary: &'static str,
    default: i64,
    minimum: i64,
    maximum: i64,
) -> Parameter {
    Parameter {
        name,
        summary,
        domain: Domain::Number {
            default,
            minimum,
            maximum,
        },
    }
}

impl Workload {
    /// Its own parameters, then those that all workloads have.
    pub fn all_parameters(&self) -> Vec<Parameter> {
        let own = self
            .parameters
            .iter()
            .map(|parameter| Parameter { ..*parameter });
        own.chain([
            count(
                "operations",
                "operations in one pass",
                self.operations,
                1_000_000,
            ),
            count(
                "passes",
                "passes that count, after those that are discarded",
                self.passes,
                1_000,
            ),
        ])
        .collect()
    }
}

fn count(name: &'static str, summary: &'static str, default: i64, maximum: i64) -> Parameter {
    Parameter {
        name,
        summary,
        domain: Domain::Number {
            default,
            minimum: 1,
            maximum,
        },
    }
}
