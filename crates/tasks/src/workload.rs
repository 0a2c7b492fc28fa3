//! What a workload of several tasks can declare: what its tasks may be, and what can be set.

use serde_json::{json, Value};

/// What tasks may be: processes that share nothing but what a workload lets them share, or threads of one process.
pub const EITHER: &[&str] = &["processes", "threads"];
/// As `EITHER`, and threads unless asked otherwise: as processes they have nothing to do with one another.
pub const THREADS_FIRST: &[&str] = &["threads", "processes"];
/// Processes alone: what is worked on belongs to a process, not to a thread.
pub const PROCESSES: &[&str] = &["processes"];

/// One thing that can be set.
#[derive(Clone, Copy)]
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
    /// A whole number: default, least, most.
    Number(i64, i64, i64),
    /// One of a few words, the default first.
    Choice(&'static [&'static str]),
    /// A directory's path.
    Directory(&'static str),
}

/// The parameter of workloads that need files.
pub const DIRECTORY: Parameter = Parameter {
    name: "path",
    summary: "directory in which the files are made, and removed at the end",
    domain: Domain::Directory("/tmp"),
};

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
        domain: Domain::Number(default, minimum, maximum),
    }
}

impl Parameter {
    /// In the fields of ktrial's `Parameter`.
    pub fn described(&self) -> Value {
        let mut description = json!({"name": self.name, "summary": self.summary});
        match self.domain {
            Domain::Number(default, minimum, maximum) => {
                description["default"] = json!(default);
                description["minimum"] = json!(minimum);
                description["maximum"] = json!(maximum);
            }
            Domain::Choice(choices) => {
                description["default"] = json!(choices[0]);
                description["choices"] = json!(choices);
            }
            Domain::Directory(default) => description["default"] = json!(default),
        }
        description
    }
}
