//! Pairs of tasks that pass a byte to and fro through TCP.

use crate::arguments::{Arguments, Workload};
use crate::connections::connection;
use crate::crew::Crew;
use crate::failure::Failure;
use crate::partners::Partner;
use crate::workload::EITHER;

pub const WORKLOAD: Workload = Workload {
    name: "tcp1",
    summary: "pairs of tasks that pass a byte to and fro through TCP",
    does: "Sends a byte to a partner of the task's own, by a connection of TCP over 127.0.0.1 without Nagle's \
           delay, which sends it back. Where tasks are pinned the partner is on the same CPU. The byte that \
           comes back must be the one that was sent.",
    system_calls: &["write", "read", "read (partner)", "write (partner)"],
    metric: "round trip",
    also: &[],
    parameters: &[],
    kinds: EITHER,
    source: "netperf TCP_RR, with a pair for each task",
    operations: 60,
    run,
};

fn run(_: &Arguments, crew: &mut Crew) -> Result<(), Failure> {
    crew.measure(|task| {
        let (ours, theirs) = connection()?;
        let partner = Partner::between(task.thread, ours, theirs)?;
        let mut byte = 0_u8;
        Ok(move || {
            byte = byte.wrapping_add(1);
            partner.ask(byte)
        })
    })?;
    Ok(())
}
