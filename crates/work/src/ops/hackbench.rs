//! Groups of senders and receivers.

use crate::arguments::{Arguments, Workload};
use crate::failure::Failure;
use crate::hackbench::{Crowd, Size};
use crate::meter::Meter;
use crate::processes::never_preempt_on_waking;
use crate::workload::{Domain, Parameter};

pub const WORKLOAD: Workload = Workload {
    name: "hackbench",
    summary: "groups of senders and receivers, each sender to each receiver",
    does: "In each group 20 senders write messages of 100 bytes to each of 20 receivers, several times over; \
           all are made beforehand and start together. One operation is one whole run: from the start to the \
           end of the last worker. Every receiver must get every byte, and every worker must end well. Three \
           runs come first and are discarded. Even so an irrelevant change moves the median by several \
           percent, with processes above all: which worker preempts which, and where the allocator finds its \
           pages, is chaotic.",
    system_calls: &["poll", "write", "read", "exit_group", "wait4"],
    metric: "run",
    also: &[],
    parameters: &[
        number("groups", "groups of senders and receivers", 1, 1, 100),
        number("loops", "messages from each sender to each receiver", 5, 1, 100_000),
        number("fds", "senders in a group, and receivers in a group", 20, 1, 100),
        number("bytes", "bytes in a message", 100, 1, 65_536),
        Parameter {
            name: "workers",
            summary: "what senders and receivers are",
            domain: Domain::Choice { default: "processes", choices: &["processes", "threads"] },
        },
        Parameter {
            name: "channel",
            summary: "what messages go through",
            domain: Domain::Choice { default: "sockets", choices: &["sockets", "pipes"] },
        },
        Parameter {
            name: "policy",
            summary: "the workers' scheduling policy; under batch none preempts the one that wakes it",
            domain: Domain::Choice { default: "normal", choices: &["normal", "batch"] },
        },
    ],
    source: "hackbench of rt-tests, with its defaults but for groups and loops",
    operations: 1,
    passes: 7,
    discarded: 3,
    spreads: true,
    fixed_layout: true,
    run,
};

const fn number(name: &'static str, summary: &'static str, default: i64, minimum: i64, maximum: i64) -> Parameter {
    Parameter { name, summary, domain: Domain::Number { default, minimum, maximum } }
}

fn run(arguments: &Arguments, meter: &mut Meter) -> Result<(), Failure> {
    if arguments.text("policy") == "batch" {
        never_preempt_on_waking()?;
    }
    let size = Size {
        groups: arguments.size("groups"),
        loops: arguments.size("loops"),
        fds: arguments.size("fds"),
        bytes: arguments.size("bytes"),
        threads: arguments.text("workers") == "threads",
        pipes: arguments.text("channel") == "pipes",
    };
    meter.repeat_prepared(|| Crowd::assemble(&size), Crowd::run)
}
