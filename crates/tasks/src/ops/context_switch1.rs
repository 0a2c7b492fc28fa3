//! Pairs of tasks that pass a byte to and fro.

use crate::arguments::{Arguments, Workload};
use crate::crew::Crew;
use crate::failure::Failure;
use crate::partners::Partner;
use crate::workload::EITHER;

pub const WORKLOAD: Workload = Workload {
    name: "context-switch1",
    summary: "pairs of tasks that pass a byte to and fro",
    does: "Sends a byte through a pipe to a partner of the task's own, which sends it back through another: \
           two context switches. Where tasks are pinned the partner is on the same CPU. The byte that comes \
           back must be the one that was sent.",
    system_calls: &["write", "read", "read (partner)", "write (partner)"],
    metric: "round trip",
    also: &[],
    parameters: &[],
    kinds: EITHER,
    source: "will-it-scale context_switch1",
    operations: 250,
    run,
};

fn run(_: &Arguments, crew: &mut Crew) -> Result<(), Failure> {
    crew.measure(|task| {
        let partner = Partner::start(task.thread)?;
        let mut byte = 0_u8;
        Ok(move || {
            byte = byte.wrapping_add(1);
            partner.ask(byte)
        })
    })?;
    Ok(())
}
