//! `confine [--write PATH]… -- PROGRAM [ARGUMENT]…`: runs a program in a domain of Landlock's.
//!
//! It writes, makes, renames and removes files below these paths alone, connects to no TCP port, and reaches no
//! process or abstract socket outside; so does all that it starts. What it has open stays open, and files
//! without a name (memfd) stay as they are. A kernel gives what it knows of that; one that has no Landlock, or
//! does not use it, is told with exit status 126, and nothing is run.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use landlock::{
    path_beneath_rules, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, RulesetStatus, Scope, ABI,
};

/// As of a shell that cannot run what it found, or does not find it.
const NOT_CONFINED: u8 = 126;
const NOT_RUN: u8 = 127;
const NEWEST: ABI = ABI::V6;

struct Order {
    writable: Vec<OsString>,
    program: OsString,
    arguments: Vec<OsString>,
}

fn main() -> ExitCode {
    let Some(order) = order_in(std::env::args_os().skip(1)) else {
        eprintln!("confine: usage: confine [--write PATH]... -- PROGRAM [ARGUMENT]...");
        return ExitCode::from(NOT_CONFINED);
    };
    match enter_domain(&order.writable) {
        Ok(RulesetStatus::NotEnforced) => {
            eprintln!("confine: this kernel has no Landlock, or does not use it");
            return ExitCode::from(NOT_CONFINED);
        }
        Ok(_) => {}
        Err(error) => {
            eprintln!("confine: {error}");
            return ExitCode::from(NOT_CONFINED);
        }
    }
    let error = Command::new(&order.program).args(&order.arguments).exec();
    eprintln!("confine: {}: {error}", order.program.to_string_lossy());
    ExitCode::from(NOT_RUN)
}

fn order_in(mut words: impl Iterator<Item = OsString>) -> Option<Order> {
    let mut writable = Vec::new();
    loop {
        let word = words.next()?;
        if word == "--" {
            break;
        }
        if word != "--write" {
            return None;
        }
        writable.push(words.next()?);
    }
    let program = words.next()?;
    Some(Order {
        writable,
        program,
        arguments: words.collect(),
    })
}

/// From now on this process, and what it becomes, is in the domain.
fn enter_domain(writable: &[OsString]) -> Result<RulesetStatus, RulesetError> {
    let writing = AccessFs::from_write(NEWEST);
    let entered = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(writing)?
        .handle_access(AccessNet::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?
        .create()?
        .add_rules(path_beneath_rules(writable, writing))?
        .restrict_self()?;
    Ok(entered.ruleset)
}
