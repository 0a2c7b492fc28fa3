//! Send a signal to oneself.

use std::cell::Cell;

use crate::arguments::{Arguments, Workload};
use crate::crew::Crew;
use crate::failure::{must, succeeded, Failure};
use crate::workload::EITHER;

pub const WORKLOAD: Workload = Workload {
    name: "signal1",
    summary: "send a signal to oneself",
    does: "Sends SIGUSR1 to the task itself; the handler, which counts, must have run before the call is \
           over.",
    system_calls: &["tgkill", "rt_sigreturn"],
    metric: "signal",
    also: &[],
    parameters: &[],
    kinds: EITHER,
    source: "will-it-scale signal1",
    operations: 600,
    run,
};

thread_local! {
    static CAUGHT: Cell<u64> = const { Cell::new(0) };
}

extern "C" fn caught(_: libc::c_int) {
    CAUGHT.set(CAUGHT.get() + 1);
}

fn run(_: &Arguments, crew: &mut Crew) -> Result<(), Failure> {
    // SAFETY: the handler adds one to a number of its thread's, and nothing else.
    let before = unsafe { libc::signal(libc::SIGUSR1, caught as *const () as libc::sighandler_t) };
    must(before != libc::SIG_ERR, "signal cannot be set")?;
    crew.measure(|_| {
        // SAFETY: takes no arguments.
        let (process, thread) = unsafe { (libc::getpid(), libc::gettid()) };
        let mut sent = 0;
        Ok(move || {
            sent += 1;
            // SAFETY: this thread's own number.
            succeeded(unsafe { libc::syscall(libc::SYS_tgkill, process, thread, libc::SIGUSR1) }, "tgkill")?;
            must(CAUGHT.get() == sent, "a signal did not arrive")
        })
    })?;
    Ok(())
}
