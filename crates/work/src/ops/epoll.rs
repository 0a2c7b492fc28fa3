//! Two processes that wait in epoll.

use std::os::fd::{AsRawFd, OwnedFd};

use crate::arguments::{Arguments, Workload};
use crate::failure::Failure;
use crate::files::{descriptor, read_whole, write_whole};
use crate::meter::Meter;
use crate::processes::{never_preempt_on_waking, Partner};

pub const WORKLOAD: Workload = Workload {
    name: "epoll",
    summary: "two processes wake each other through eventfd and epoll",
    does: "Two processes on one CPU, each waiting in epoll for an eventfd. One operation adds to the other's \
           eventfd and waits, then reads, until the other has done the same: two wakes, two context switches. \
           Each event must be the one expected, with the number that was added. Under SCHED_BATCH neither \
           preempts the other on waking it, so that both wait each time.",
    system_calls: &["write", "epoll_wait", "read", "the same three in the other process"],
    metric: "round trip",
    also: &[],
    parameters: &[],
    source: "what an event loop does for one message",
    operations: 301,
    passes: 3,
    discarded: 1,
    spreads: false,
    fixed_layout: false,
    run,
};

const ONE: u64 = 1;
const STOP: u64 = 2;

/// An eventfd, and an epoll instance that watches it and nothing else.
struct Watched {
    event: OwnedFd,
    epoll: OwnedFd,
}

impl Watched {
    fn new() -> Result<Self, Failure> {
        // SAFETY: system calls without pointers.
        let (event, epoll) = unsafe { (libc::eventfd(0, 0), libc::epoll_create1(0)) };
        let made = Self { event: descriptor(event, "eventfd")?, epoll: descriptor(epoll, "epoll_create1")? };
        let mut interest = libc::epoll_event { events: libc::EPOLLIN as u32, u64: made.tag() };
        let (epoll, event) = (made.epoll.as_raw_fd(), made.event.as_raw_fd());
        // SAFETY: `interest` outlives the call.
        match unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, event, &mut interest) } {
            0 => Ok(made),
            _ => Err(Failure::system("epoll_ctl")),
        }
    }

    fn tag(&self) -> u64 {
        self.event.as_raw_fd() as u64
    }

    #[inline(always)]
    fn add(&self, number: u64) -> Result<(), Failure> {
        write_whole(&self.event, &number.to_ne_bytes())
    }

    #[inline(always)]
    fn wait(&self) -> Result<u64, Failure> {
        let mut happened = libc::epoll_event { events: 0, u64: 0 };
        // SAFETY: room for the one event that is asked for.
        let events = unsafe { libc::epoll_wait(self.epoll.as_raw_fd(), &mut happened, 1, -1) };
        if events != 1 || happened.u64 != self.tag() {
            return Err(Failure::system("epoll_wait"));
        }
        let mut number = [0; 8];
        read_whole(&self.event, &mut number)?;
        Ok(u64::from_ne_bytes(number))
    }
}

fn run(_: &Arguments, meter: &mut Meter) -> Result<(), Failure> {
    let (there, back) = (Watched::new()?, Watched::new()?);
    never_preempt_on_waking()?;
    let partner = Partner::start(|| loop {
        match there.wait()? {
            ONE => back.add(ONE)?,
            STOP => return Ok(()),
            other => return Err(Failure::wrong(format!("an event of {other}"))),
        }
    })?;
    meter.repeat(|| {
        there.add(ONE)?;
        match back.wait()? {
            ONE => Ok(()),
            other => Err(Failure::wrong(format!("an event of {other}"))),
        }
    })?;
    there.add(STOP)?;
    partner.finish()
}
