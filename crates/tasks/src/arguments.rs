//! What a workload declares about itself, in one constant in one file of `src/ops`, and the command line, `tasks NAME [--parameter value …]`, read against what the workload declares.

use std::path::Path;

use lexopt::prelude::{Long, Value};

use serde_json::{json, Value as Json};

use crate::clock::Clock;
use crate::crew::{Asked, Crew};
use crate::failure::Failure;
use crate::workload::{number, Domain, Parameter};

/// A workload of one to many tasks: its description, and the function that runs it.
pub struct Workload {
    /// What people type.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// One operation of a task, step by step, and what is checked.
    pub does: &'static str,
    /// The system calls of one operation, in order.
    pub system_calls: &'static [&'static str],
    /// The metric's name: what one operation is.
    pub metric: &'static str,
    /// What is measured beside time and throughput: name, unit. Less is better.
    pub also: &'static [(&'static str, &'static str)],
    /// What can be set, apart from what all have; one of the same name stands in its place.
    pub parameters: &'static [Parameter],
    /// What its tasks may be, the default first.
    pub kinds: &'static [&'static str],
    /// Where the operation comes from.
    pub source: &'static str,
    /// Operations of each task in one pass, by default: some milliseconds of guest time.
    pub operations: i64,
    /// Has the crew do it.
    pub run: fn(&Arguments, &mut Crew) -> Result<(), Failure>,
}

impl Workload {
    /// Its own parameters, then those that all have.
    pub fn all_parameters(&self) -> Vec<Parameter> {
        let common = [
            number("tasks", "tasks that work at the same time; 0: as many as there are CPUs", 0, 0, 256),
            Parameter {
                name: "kind",
                summary: "what tasks are: processes of their own, or threads of one",
                domain: Domain::Choice(self.kinds),
            },
            Parameter {
                name: "pinned",
                summary: "whether each task is held on a CPU, by turns, or goes where the scheduler puts it",
                domain: Domain::Choice(&["yes", "no"]),
            },
            number("operations", "operations of each task in one pass", self.operations, 1, 10_000_000),
            number("passes", "passes that count, after one that is discarded", 3, 1, 1_000),
        ];
        let own = |common: &Parameter| self.parameters.iter().any(|own| own.name == common.name);
        let common = common.into_iter().filter(|each| !own(each));
        self.parameters.iter().copied().chain(common).collect()
    }

    /// The description, in the fields of ktrial's `WorkloadDescription`.
    pub fn described(&self) -> Json {
        let mut metrics = vec![
            json!({"name": self.metric, "unit": "instructions", "direction": "lower"}),
            json!({"name": "throughput", "unit": "ops/s", "direction": "higher"}),
        ];
        let also = self.also.iter();
        metrics.extend(
            also.map(|(name, unit)| json!({"name": name, "unit": unit, "direction": "lower"})),
        );
        let parameters: Vec<Json> = self
            .all_parameters()
            .iter()
            .map(Parameter::described)
            .collect();
        json!({
            "name": self.name,
            "summary": self.summary,
            "does": self.does,
            "system_calls": self.system_calls,
            "metrics": metrics,
            "parameters": parameters,
            "source": self.source,
            "group": "several tasks",
        })
    }
}

/// What the command line asks for.
pub enum Request {
    /// `--help`
    Help,
    /// `--list`
    List,
    /// A workload.
    Run(Box<Arguments>),
}

/// A workload with the values of all its parameters.
pub struct Arguments {
    /// The workload.
    pub workload: &'static Workload,
    /// The clock that tasks read.
    pub clock: Clock,
    values: Vec<(&'static str, String)>,
}

impl Arguments {
    /// The value of a parameter that the workload declares.
    pub fn text(&self, name: &str) -> &str {
        let found = self.values.iter().find(|(known, _)| *known == name);
        &found
            .expect("a workload reads only parameters that it declares")
            .1
    }

    /// A parameter that is declared as a number of at least 0.
    pub fn size(&self, name: &str) -> usize {
        self.text(name).parse().expect("checked when it was read")
    }

    /// What is asked of the crew.
    pub fn asked(&self) -> Asked {
        Asked {
            clock: self.clock,
            tasks: self.size("tasks"),
            threads: self.text("kind") == "threads",
            pinned: self.text("pinned") == "yes",
            operations: self.size("operations") as u64,
            passes: self.size("passes"),
        }
    }
}

/// Read the whole command line, without the program's name. The error says what is allowed.
pub fn parse(
    words: impl IntoIterator<Item = std::ffi::OsString>,
    workloads: &[&'static Workload],
) -> Result<Request, String> {
    let mut parser = lexopt::Parser::from_args(words);
    match parser.next().map_err(told)? {
        None | Some(Long("help") | lexopt::Arg::Short('h')) => Ok(Request::Help),
        Some(Long("list")) => Ok(Request::List),
        Some(Value(name)) => {
            let name = name.to_string_lossy();
            let found = workloads.iter().find(|workload| workload.name == name);
            let workload =
                found.ok_or_else(|| format!("there is no workload {name}; --list has them"))?;
            read_all(workload, &mut parser).map(|run| Request::Run(Box::new(run)))
        }
        Some(other) => Err(format!("{}; name a workload first", other.unexpected())),
    }
}

fn read_all(workload: &'static Workload, parser: &mut lexopt::Parser) -> Result<Arguments, String> {
    let parameters = workload.all_parameters();
    let mut clock = Clock::Tsc;
    let mut values: Vec<_> = parameters
        .iter()
        .map(|each| (each.name, default(each.domain)))
        .collect();
    while let Some(argument) = parser.next().map_err(told)? {
        let Long(name) = argument else {
            return Err(told(argument.unexpected()));
        };
        let name = name.to_owned();
        let text = parser.value().map_err(told)?.to_string_lossy().into_owned();
        if name == "clock" {
            clock = Clock::find(&text)
                .ok_or_else(|| format!("--clock {text}: give tsc or monotonic"))?;
            continue;
        }
        let at = parameters.iter().position(|each| each.name == name);
        let at = at.ok_or_else(|| format!("{} has no parameter --{name}", workload.name))?;
        check(&parameters[at], &text)?;
        values[at].1 = text;
    }
    Ok(Arguments {
        workload,
        clock,
        values,
    })
}

fn told(error: lexopt::Error) -> String {
    error.to_string()
}

fn default(domain: Domain) -> String {
    match domain {
        Domain::Number(default, ..) => default.to_string(),
        Domain::Choice(choices) => choices[0].to_owned(),
        Domain::Directory(default) => default.to_owned(),
    }
}

fn check(parameter: &Parameter, text: &str) -> Result<(), String> {
    let (holds, allowed) = match parameter.domain {
        Domain::Number(_, least, most) => (
            text.parse()
                .is_ok_and(|number: i64| (least..=most).contains(&number)),
            format!("a whole number from {least} to {most}"),
        ),
        Domain::Choice(choices) => (choices.contains(&text), choices.join(" or ")),
        Domain::Directory(_) => (
            Path::new(text).is_dir(),
            "a directory that exists".to_owned(),
        ),
    };
    if holds {
        return Ok(());
    }
    Err(format!("--{} {text}: give {allowed}", parameter.name))
}
