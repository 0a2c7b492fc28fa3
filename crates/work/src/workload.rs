//! What a workload can declare: what can be set, and what it measures.

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

/// A parameter that is a whole number of at least one.
pub const fn count(
    name: &'static str,
    summary: &'static str,
    default: i64,
    maximum: i64,
) -> Parameter {
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
