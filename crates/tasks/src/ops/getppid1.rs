//! The null system call.

use crate::arguments::{Arguments, Workload};
use crate::crew::Crew;
use crate::failure::{must, Failure};
use crate::workload::EITHER;

pub const WORKLOAD: Workload = Workload {
    name: "getppid1",
    summary: "the null system call",
    does: "Enters the kernel and comes back: getppid, called directly. Its answer must be the same each \
           time.",
    system_calls: &["getppid"],
    metric: "call",
    also: &[],
    parameters: &[],
    kinds: EITHER,
    source: "will-it-scale getppid1",
    operations: 5000,
    run,
};

fn run(_: &Arguments, crew: &mut Crew) -> Result<(), Failure> {
    crew.measure(|_| {
        // SAFETY: takes no arguments and cannot fail.
        let ask = || unsafe { libc::syscall(libc::SYS_getppid) };
        let parent = ask();
        Ok(move || must(ask() == parent, "getppid names another parent"))
    })?;
    Ok(())
}
