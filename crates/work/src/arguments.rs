//! What a workload declares about itself, in one constant in one file of `src/ops`, and the command line, `work NAME
//! [--parameter value …]`, read against it.

use std::fmt;
use std::path::Path;

use lexopt::prelude::{Long, Value};
use strsim::jaro_winkler;

use crate::clock::ClockKind;
use crate::failure::Failure;
use crate::meter::{Meter, Timed};
use crate::workload::{count, Domain, Measure, Parameter};

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

/// What is wrong with the command line, and what is allowed. Exit status 2.
#[derive(Debug)]
pub struct Misuse(String);

impl fmt::Display for Misuse {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl From<lexopt::Error> for Misuse {
    fn from(error: lexopt::Error) -> Self {
        Self(error.to_string())
    }
}

/// What the command line asks for.
pub enum Request {
    /// `--help`
    Help,
    /// `--list`
    List,
    /// `--noop`: end at once, successfully (the program that `exec` executes is this one).
    Nothing,
    /// `--unixbench NAME ARGUMENT…`: one of the programs that UnixBench's tests execute.
    UnixBench(Vec<String>),
    /// A workload.
    Run(Box<Arguments>),
}

/// A workload with the values of all its parameters.
pub struct Arguments {
    /// The workload.
    pub workload: &'static Workload,
    /// The clock that operations are timed with.
    pub clock: ClockKind,
    /// Whether the time of every operation is reported.
    pub vector: bool,
    values: Vec<(&'static str, Setting)>,
}

enum Setting {
    Number(i64),
    Text(String),
}

impl Arguments {
    /// The value of a parameter that the workload declares as a number.
    pub fn number(&self, name: &str) -> i64 {
        match self.setting(name) {
            Setting::Number(number) => *number,
            Setting::Text(_) => unreachable!("{name} is declared as a text"),
        }
    }

    /// A number that is a size or a count, and declared to be at least 0.
    pub fn size(&self, name: &str) -> usize {
        usize::try_from(self.number(name)).expect("declared with a minimum of at least 0")
    }

    /// The value of a parameter that the workload declares as a choice or a directory.
    pub fn text(&self, name: &str) -> &str {
        match self.setting(name) {
            Setting::Text(text) => text,
            Setting::Number(_) => unreachable!("{name} is declared as a number"),
        }
    }

    fn setting(&self, name: &str) -> &Setting {
        let found = self.values.iter().find(|(known, _)| *known == name);
        &found
            .expect("a workload reads only parameters that it declares")
            .1
    }
}

impl Timed for Arguments {
    fn name(&self) -> &'static str {
        self.workload.name
    }

    fn metric(&self) -> &'static str {
        self.workload.metric
    }

    fn also(&self) -> &'static [Measure] {
        self.workload.also
    }

    fn discarded(&self) -> usize {
        self.workload.discarded
    }

    fn passes(&self) -> usize {
        self.size("passes")
    }

    fn operations(&self) -> usize {
        self.size("operations")
    }

    fn clock(&self) -> ClockKind {
        self.clock
    }

    fn vector(&self) -> bool {
        self.vector
    }
}

/// Read the whole command line, without the program's name. It may name one of `workloads`.
pub fn parse(
    arguments: impl IntoIterator<Item = std::ffi::OsString>,
    workloads: &[&'static Workload],
) -> Result<Request, Misuse> {
    let mut parser = lexopt::Parser::from_args(arguments);
    match parser.next()? {
        None | Some(Long("help") | lexopt::Arg::Short('h')) => Ok(Request::Help),
        Some(Long("list")) => Ok(Request::List),
        Some(Long("noop")) => Ok(Request::Nothing),
        Some(Long("unixbench")) => {
            let words = parser
                .raw_args()?
                .map(|word| word.to_string_lossy().into_owned());
            Ok(Request::UnixBench(words.collect()))
        }
        Some(Value(name)) => run(&name.to_string_lossy(), &mut parser, workloads)
            .map(|run| Request::Run(Box::new(run))),
        Some(other) => Err(Misuse(format!(
            "{}; name a workload first",
            other.unexpected()
        ))),
    }
}

fn run(
    name: &str,
    parser: &mut lexopt::Parser,
    workloads: &[&'static Workload],
) -> Result<Arguments, Misuse> {
    let workload = find(name, workloads).ok_or_else(|| unknown_workload(name, workloads))?;
    let parameters = workload.all_parameters();
    let values = parameters
        .iter()
        .map(|parameter| (parameter.name, default(parameter.domain)))
        .collect();
    let mut arguments = Arguments {
        workload,
        clock: ClockKind::Tsc,
        vector: false,
        values,
    };
    while let Some(argument) = parser.next()? {
        match argument {
            Long("vector") => arguments.vector = true,
            Long("clock") => arguments.clock = clock(&text(parser)?)?,
            Long(name) => {
                let at = position(&parameters, name, workload)?;
                arguments.values[at].1 = read(&parameters[at], &text(parser)?)?;
            }
            other => return Err(other.unexpected().into()),
        }
    }
    Ok(arguments)
}

fn find(name: &str, workloads: &[&'static Workload]) -> Option<&'static Workload> {
    let mut all = workloads.iter().copied();
    all.find(|workload| workload.name == name)
}

fn text(parser: &mut lexopt::Parser) -> Result<String, Misuse> {
    Ok(parser.value()?.to_string_lossy().into_owned())
}

fn clock(name: &str) -> Result<ClockKind, Misuse> {
    ClockKind::find(name).ok_or_else(|| Misuse(format!("--clock {name}: give tsc or monotonic")))
}

fn default(domain: Domain) -> Setting {
    match domain {
        Domain::Number { default, .. } => Setting::Number(default),
        Domain::Choice { default, .. } | Domain::Directory { default } => {
            Setting::Text(default.to_owned())
        }
    }
}

fn read(parameter: &Parameter, text: &str) -> Result<Setting, Misuse> {
    let misuse = |allowed: String| Misuse(format!("--{} {text}: give {allowed}", parameter.name));
    match parameter.domain {
        Domain::Number {
            minimum, maximum, ..
        } => match text.parse() {
            Ok(number) if (minimum..=maximum).contains(&number) => Ok(Setting::Number(number)),
            _ => Err(misuse(format!(
                "a whole number from {minimum} to {maximum}"
            ))),
        },
        Domain::Choice { choices, .. } if choices.contains(&text) => {
            Ok(Setting::Text(text.to_owned()))
        }
        Domain::Choice { choices, .. } => Err(misuse(choices.join(" or "))),
        Domain::Directory { .. } if Path::new(text).is_dir() => Ok(Setting::Text(text.to_owned())),
        Domain::Directory { .. } => Err(misuse("a directory that exists".to_owned())),
    }
}

fn position(parameters: &[Parameter], name: &str, workload: &Workload) -> Result<usize, Misuse> {
    parameters
        .iter()
        .position(|parameter| parameter.name == name)
        .ok_or_else(|| {
            let names: Vec<&str> = parameters
                .iter()
                .map(|parameter| parameter.name)
                .chain(["clock", "vector"])
                .collect();
            let near = nearest(name, &names)
                .map(|near| format!(" (nearest: --{near})"))
                .unwrap_or_default();
            Misuse(format!(
                "{} has no parameter --{name}{near}; it has --{}",
                workload.name,
                names.join(", --")
            ))
        })
}

fn unknown_workload(name: &str, workloads: &[&'static Workload]) -> Misuse {
    let names: Vec<&str> = workloads.iter().map(|workload| workload.name).collect();
    let near = nearest(name, &names)
        .map(|near| format!(" (nearest: {near})"))
        .unwrap_or_default();
    Misuse(format!(
        "there is no workload {name}{near}; there are {}",
        names.join(", ")
    ))
}

fn nearest<'a>(name: &str, names: &[&'a str]) -> Option<&'a str> {
    let likeness = |other: &&str| jaro_winkler(name, other);
    let best = names
        .iter()
        .copied()
        .max_by(|a, b| likeness(a).total_cmp(&likeness(b)))?;
    (likeness(&best) > 0.7).then_some(best)
}

#[cfg(test)]
mod tests;
