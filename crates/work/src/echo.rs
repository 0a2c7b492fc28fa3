//! Two processes that send a message back and forth: what context-switch, socketpair and tcp share.

use std::os::fd::OwnedFd;

use crate::failure::Failure;
use crate::files::{read_whole, write_whole};
use crate::memory::Pages;
use crate::meter::Meter;
use crate::processes::{never_preempt_on_waking, Partner};
use crate::workload::{Domain, Parameter};

/// How long the message is.
pub const BYTES: Parameter = Parameter {
    name: "bytes",
    summary: "bytes in a message, each way",
    domain: Domain::Number {
        default: 64,
        minimum: 8,
        maximum: 4096,
    },
};

/// What one process reads from, and what it writes to.
pub type Ends = (OwnedFd, OwnedFd);

const STOP: u64 = u64::MAX;

/// Measure round trips of `bytes` bytes to a partner. The message begins with a number, and the partner adds one.
pub fn measure(meter: &mut Meter, bytes: usize, ours: Ends, theirs: Ends) -> Result<(), Failure> {
    never_preempt_on_waking()?;
    let partner = Partner::start(|| answer(bytes, &theirs))?;
    drop(theirs);
    let mut message = Pages::new(bytes)?;
    let message = &mut message[..bytes];
    let mut number = 0_u64;
    meter.repeat(|| {
        put(message, number);
        write_whole(&ours.1, message)?;
        read_whole(&ours.0, message)?;
        number += 1;
        match get(message) == number {
            true => Ok(()),
            false => Err(Failure::wrong(
                "the partner's answer is not the number asked for",
            )),
        }
    })?;
    put(message, STOP);
    write_whole(&ours.1, message)?;
    partner.finish()
}

fn answer(bytes: usize, ends: &Ends) -> Result<(), Failure> {
    let mut message = Pages::new(bytes)?;
    let message = &mut message[..bytes];
    loop {
        read_whole(&ends.0, message)?;
        let number = get(message);
        if number == STOP {
            return Ok(());
        }
        put(message, number + 1);
        write_whole(&ends.1, message)?;
    }
}

fn put(message: &mut [u8], number: u64) {
    message[..8].copy_from_slice(&number.to_le_bytes());
}

fn get(message: &[u8]) -> u64 {
    u64::from_le_bytes([
        message[0], message[1], message[2], message[3], message[4], message[5], message[6],
        message[7],
    ])
}

/// A second descriptor of the same file: where one file is both ends.
pub fn duplicate(file: &OwnedFd) -> Result<OwnedFd, Failure> {
    file.try_clone()
        .map_err(|error| Failure::io("fcntl", &error))
}
