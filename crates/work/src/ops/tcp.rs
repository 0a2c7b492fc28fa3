//! Two processes and a TCP connection over the loopback interface.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;

use crate::arguments::{Arguments, Workload};
use crate::echo;
use crate::failure::Failure;
use crate::meter::Meter;

pub const WORKLOAD: Workload = Workload {
    name: "tcp",
    summary: "a round trip between two processes, through TCP on the loopback interface",
    does: "Two processes on one CPU, connected by TCP over 127.0.0.1, without Nagle's delay. One operation \
           sends 64 bytes and waits for the answer. The answer must be complete, and the number in it \
           increased by one. Under SCHED_BATCH neither preempts the other on waking it, so that both wait \
           each time.",
    system_calls: &["write", "read", "read (the other process)", "write (the other process)"],
    metric: "round trip",
    also: &[],
    parameters: &[echo::BYTES],
    source: "lmbench lat_tcp; netperf TCP_RR",
    operations: 301,
    passes: 3,
    discarded: 1,
    spreads: false,
    fixed_layout: false,
    run,
};

fn run(arguments: &Arguments, meter: &mut Meter) -> Result<(), Failure> {
    let (ours, theirs) = connection().map_err(|error| {
        Failure::io("TCP over 127.0.0.1 (is the loopback interface up, `ip link set lo up`?)", &error)
    })?;
    let (our_copy, their_copy) = (echo::duplicate(&ours)?, echo::duplicate(&theirs)?);
    echo::measure(meter, arguments.size("bytes"), (ours, our_copy), (theirs, their_copy))
}

fn connection() -> std::io::Result<(OwnedFd, OwnedFd)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let ours = TcpStream::connect(listener.local_addr()?)?;
    let (theirs, _) = listener.accept()?;
    ours.set_nodelay(true)?;
    theirs.set_nodelay(true)?;
    Ok((ours.into(), theirs.into()))
}
