//! What a command line is read as.

use super::*;
use crate::catalogue::ALL;

fn parsed(line: &str) -> Result<Request, Misuse> {
    parse(line.split_whitespace().map(Into::into), ALL)
}

fn arguments(line: &str) -> Box<Arguments> {
    match parsed(line) {
        Ok(Request::Run(arguments)) => arguments,
        Ok(_) => panic!("{line} runs no workload"),
        Err(misuse) => panic!("{line}: {misuse}"),
    }
}

fn misuse(line: &str) -> String {
    match parsed(line) {
        Ok(_) => panic!("{line} is accepted"),
        Err(misuse) => misuse.to_string(),
    }
}

#[test]
fn parameters_have_their_defaults() {
    let found = arguments("hackbench");
    assert_eq!(found.number("fds"), 20);
    assert_eq!(found.text("workers"), "processes");
    assert_eq!(found.clock, ClockKind::Tsc);
    assert!(!found.vector);
}

#[test]
fn parameters_are_set() {
    let found =
        arguments("hackbench --groups 3 --workers threads --passes=2 --clock monotonic --vector");
    assert_eq!((found.number("groups"), found.size("passes")), (3, 2));
    assert_eq!(found.text("workers"), "threads");
    assert_eq!(found.clock, ClockKind::Monotonic);
    assert!(found.vector);
}

#[test]
fn misuse_says_what_is_allowed() {
    for (line, part) in [
        ("forkk", "there is no workload forkk (nearest: fork)"),
        (
            "hackbench --group 3",
            "no parameter --group (nearest: --groups)",
        ),
        (
            "hackbench --groups 0",
            "--groups 0: give a whole number from 1 to",
        ),
        (
            "hackbench --groups two",
            "--groups two: give a whole number",
        ),
        ("hackbench --workers fibres", "give processes or threads"),
        ("open --path /no/such/place", "give a directory that exists"),
        (
            "fork --clock sundial",
            "--clock sundial: give tsc or monotonic",
        ),
        ("fork --operations", "operations"),
        ("fork fork", "fork"),
        ("--groups 3 hackbench", "name a workload first"),
    ] {
        let found = misuse(line);
        assert!(found.contains(part), "{line}: {found}");
    }
}
