//! What is to be run, and where: one line of JSON.

use std::io::{self, BufRead as _};

use serde::Deserialize;
use wire::steps::Run;

/// The whole order.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// In this order, one after another.
    pub rows: Vec<Row>,
    /// CPUs that the programs may use; empty: those that this process may.
    pub cpus: Vec<usize>,
    /// The directory of the control group that the programs go to; empty: the one of this process.
    pub cgroup: String,
    /// The process whose use of CPU is ktrial's; 0: none.
    pub parent: i32,
}

/// A program that runs several times in a row, which are as many steps.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// The first one's index into the steps that the target was handed; the others follow.
    pub step: u32,
    /// How often it runs.
    pub times: u32,
    /// The program. What is sampled is sampled around the row.
    pub run: Run,
    /// As whom it runs; none: as this process.
    #[serde(default)]
    pub user: Option<User>,
}

/// A user, and the groups that the user is in.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct User {
    /// The user's number.
    pub uid: u32,
    /// The first group's.
    pub gid: u32,
    /// All groups.
    pub groups: Vec<u32>,
}

impl Order {
    /// The line on standard input.
    pub fn read() -> io::Result<Self> {
        let mut line = String::new();
        io::stdin().lock().read_line(&mut line)?;
        Ok(serde_json::from_str(&line)?)
    }
}
