//! Look at sixteen descriptors.

use std::os::fd::{AsRawFd, OwnedFd};

use crate::arguments::{Arguments, Workload};
use crate::crew::Crew;
use crate::failure::{must, succeeded, Failure};
use crate::files::eventfd;
use crate::workload::EITHER;

pub const WORKLOAD: Workload = Workload {
    name: "poll1",
    summary: "look at sixteen descriptors",
    does: "Polls sixteen eventfds of the task's own, of which one is ready; exactly one must be.",
    system_calls: &["poll"],
    metric: "call",
    also: &[],
    parameters: &[],
    kinds: EITHER,
    source: "will-it-scale poll1, with sixteen descriptors",
    operations: 600,
    run,
};

fn run(_: &Arguments, crew: &mut Crew) -> Result<(), Failure> {
    crew.measure(|_| {
        let files: Vec<OwnedFd> = (0..16).map(|number| eventfd(u32::from(number == 15))).collect::<Result<_, _>>()?;
        let mut asked: Vec<libc::pollfd> = (files.iter())
            .map(|file| libc::pollfd { fd: file.as_raw_fd(), events: libc::POLLIN, revents: 0 })
            .collect();
        Ok(move || {
            let _open = &files;
            // SAFETY: as many structures as are told, which outlive the call.
            let ready = unsafe { libc::poll(asked.as_mut_ptr(), asked.len() as libc::nfds_t, 0) };
            must(succeeded(ready, "poll")? == 1, "another number of descriptors is ready")
        })
    })?;
    Ok(())
}
