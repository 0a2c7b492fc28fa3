//! A program and all that it starts, followed from one system call to the next.

use std::collections::BTreeMap;
use std::ffi::{CString, OsString};
use std::io;
use std::mem::{size_of, zeroed};
use std::os::unix::ffi::OsStrExt;
use std::ptr::null_mut;

use libc::{c_int, c_long, c_uint, pid_t};

use crate::calls::Call;

/// As a shell says that a program could not be started.
const NOT_STARTED: c_int = 127;
const SYSTEM_CALL_STOP: c_int = libc::SIGTRAP | 0x80;
const OPTIONS: c_int = libc::PTRACE_O_TRACESYSGOOD
    | libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEEXEC
    | libc::PTRACE_O_EXITKILL;
const STOPPING: [c_int; 4] = [libc::SIGSTOP, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];

/// What a task has done.
#[derive(Debug)]
pub enum Event {
    /// A system call has returned this.
    Returned(Call, i64),
    /// A signal is about to be delivered.
    Signalled(c_int),
}

/// Run a program; `seen` is told what its tasks do, until it answers that it has seen enough: then each goes on alone.
/// The status with which it ended, as waitpid gives it.
pub fn run(argv: &[OsString], mut seen: impl FnMut(pid_t, Event) -> bool) -> io::Result<c_int> {
    let program = start(argv)?;
    let (mut begun, mut enough) = (false, false);
    let mut calls = BTreeMap::new();
    loop {
        let mut status = 0;
        // SAFETY: the status is written to a number of our own.
        let task = answer(unsafe { libc::waitpid(-1, &mut status, libc::__WALL) }.into())? as pid_t;
        if !libc::WIFSTOPPED(status) {
            calls.remove(&task);
            if task == program {
                return Ok(status);
            }
            continue;
        }
        let (signal, event) = (libc::WSTOPSIG(status), status >> 16);
        let mut delivered = 0;
        if signal == SYSTEM_CALL_STOP {
            let now = system_call(task, &mut calls).filter(|_| begun && !enough);
            enough |= now.is_some_and(|(call, value)| seen(task, Event::Returned(call, value)));
        } else if event == libc::PTRACE_EVENT_STOP {
            if STOPPING.contains(&signal) && !enough {
                let _ = ptrace(libc::PTRACE_LISTEN, task, 0, 0);
                continue;
            }
        } else if event == libc::PTRACE_EVENT_EXEC {
            begun = true;
        } else if event == 0 {
            delivered = signal;
            enough |= begun && !enough && seen(task, Event::Signalled(signal));
        }
        let way = if enough {
            libc::PTRACE_DETACH
        } else {
            libc::PTRACE_SYSCALL
        };
        // It may have been killed meanwhile.
        let _ = ptrace(way, task, 0, delivered as usize);
    }
}

/// A child that has been told to become the program once it is followed.
fn start(argv: &[OsString]) -> io::Result<pid_t> {
    let words = argv
        .iter()
        .map(|word| CString::new(word.as_bytes()))
        .collect::<Result<Vec<_>, _>>()?;
    let mut pointers: Vec<_> = words.iter().map(|word| word.as_ptr()).collect();
    pointers.push(null_mut());
    let mut ends = [0; 2];
    // SAFETY: two numbers are written to an array of two.
    answer(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) }.into())?;
    // SAFETY: this process has one thread; the child reads, becomes the program, or ends.
    let child = answer(unsafe { libc::fork() }.into())? as pid_t;
    if child == 0 {
        // SAFETY: one byte into one of our own; `pointers` is the array with its null pointer that execvp wants.
        unsafe {
            let mut byte = 0u8;
            libc::read(ends[0], (&raw mut byte).cast(), 1);
            libc::execvp(pointers[0], pointers.as_ptr());
            eprintln!(
                "{}: {}",
                argv[0].to_string_lossy(),
                io::Error::last_os_error()
            );
            libc::_exit(NOT_STARTED)
        }
    }
    ptrace(libc::PTRACE_SEIZE, child, 0, OPTIONS as usize)?;
    ptrace(libc::PTRACE_INTERRUPT, child, 0, 0)?;
    let mut status = 0;
    // SAFETY: the status is written to a number of our own, and one byte is read from one.
    unsafe {
        answer(libc::waitpid(child, &mut status, libc::__WALL).into())?;
        ptrace(libc::PTRACE_SYSCALL, child, 0, 0)?;
        answer(libc::write(ends[1], (&raw const status).cast(), 1) as c_long)?;
        libc::close(ends[0]);
        libc::close(ends[1]);
    }
    Ok(child)
}

/// The call that has returned at this stop, and what it returned; None where one begins.
fn system_call(task: pid_t, calls: &mut BTreeMap<pid_t, Call>) -> Option<(Call, i64)> {
    // SAFETY: plain numbers, which may be zero.
    let mut info: libc::ptrace_syscall_info = unsafe { zeroed() };
    let size = size_of::<libc::ptrace_syscall_info>();
    ptrace(
        libc::PTRACE_GET_SYSCALL_INFO,
        task,
        size,
        (&raw mut info) as usize,
    )
    .ok()?;
    match info.op {
        libc::PTRACE_SYSCALL_INFO_ENTRY => {
            // SAFETY: `op` says which of the union it is.
            let entry = unsafe { info.u.entry };
            let (number, arguments) = (entry.nr, entry.args);
            calls.insert(task, Call { number, arguments });
            None
        }
        libc::PTRACE_SYSCALL_INFO_EXIT => {
            // SAFETY: `op` says which of the union it is.
            let exit = unsafe { info.u.exit };
            Some((calls.remove(&task)?, exit.sval))
        }
        _ => None,
    }
}

fn ptrace(request: c_uint, task: pid_t, address: usize, data: usize) -> io::Result<c_long> {
    // SAFETY: of the requests used here only PTRACE_GET_SYSCALL_INFO writes: to a structure of ours of the size `address`.
    answer(unsafe { libc::ptrace(request, task, address, data) })
}

fn answer(returned: c_long) -> io::Result<c_long> {
    if returned < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(returned)
}
