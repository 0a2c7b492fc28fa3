//! A pipe's two ends in one process.

use crate::arguments::{Arguments, Workload};
use crate::failure::Failure;
use crate::files::{self, read_whole, write_whole};
use crate::memory::Pages;
use crate::meter::Meter;
use crate::workload::{Domain, Parameter};

pub const WORKLOAD: Workload = Workload {
    name: "pipe",
    summary: "512 bytes through a pipe, in one process",
    does: "One operation writes 512 bytes to a pipe and reads them back; nobody waits. Both must be complete, and a \
           number at the start of the message must come back as it went.",
    system_calls: &["write", "read"],
    metric: "round trip",
    also: &[],
    parameters: &[Parameter {
        name: "bytes",
        summary: "bytes in a message",
        domain: Domain::Number { default: 512, minimum: 8, maximum: 65_536 },
    }],
    source: "UnixBench pipe",
    operations: 501,
    passes: 3,
    discarded: 1,
    spreads: false,
    fixed_layout: false,
    run,
};

fn run(arguments: &Arguments, meter: &mut Meter) -> Result<(), Failure> {
    let bytes = arguments.size("bytes");
    let (output, input) = files::pipe()?;
    let (mut sent, mut received) = (Pages::new(bytes)?, Pages::new(bytes)?);
    let mut number = 0_u64;
    meter.repeat(|| {
        number += 1;
        sent[..8].copy_from_slice(&number.to_le_bytes());
        write_whole(&input, &sent[..bytes])?;
        read_whole(&output, &mut received[..bytes])?;
        match sent[..8] == received[..8] {
            true => Ok(()),
            false => Err(Failure::wrong("the pipe changed the message")),
        }
    })
}
