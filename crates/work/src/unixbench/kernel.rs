//! The tests that are mostly the kernel's work: system calls, pipes, processes, programs.

use std::fs::File;
use std::io::Read;
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use super::pass::{tell, Pass, Passed};
use crate::children;
use crate::clock::ClockKind;
use crate::failure::Failure;
use crate::files::{pipe, read_whole, write_whole};
use crate::meter::Meter;
use crate::processes::{wait, Partner};

/// syscall: dup, close, getpid, getuid, umask ('mix').
pub fn syscall(pass: &Pass) -> Result<Passed, Failure> {
    let (open, _other) = pipe()?;
    pass.count(|| {
        // SAFETY: plain calls; the copy is closed at once and used no more.
        let closed = unsafe {
            let copy = libc::syscall(libc::SYS_dup, std::os::fd::AsRawFd::as_raw_fd(&open));
            let closed = libc::syscall(libc::SYS_close, copy);
            libc::syscall(libc::SYS_getpid);
            libc::syscall(libc::SYS_getuid);
            libc::syscall(libc::SYS_umask, 0o22);
            closed
        };
        match closed {
            0 => Ok(()),
            _ => Err(Failure::system("dup, close")),
        }
    })
}

/// pipe: 512 bytes into a pipe and out of it, in one process.
pub fn pipe_throughput(pass: &Pass) -> Result<Passed, Failure> {
    let (from, to) = pipe()?;
    let mut buffer = [0; 512];
    pass.count(|| {
        write_whole(&to, &buffer)?;
        read_whole(&from, &mut buffer)
    })
}

/// context1: a number goes to another process and comes back, through two pipes; each checks it.
pub fn context1(pass: &Pass) -> Result<Passed, Failure> {
    let (child_from, to_child) = pipe()?;
    let (from_child, child_to) = pipe()?;
    let partner = Partner::start(|| {
        let mut number = [0; 8];
        for expected in 0u64.. {
            read_whole(&child_from, &mut number)?;
            if u64::from_le_bytes(number) == u64::MAX {
                break;
            }
            in_turn(number, expected)?;
            write_whole(&child_to, &number)?;
        }
        Ok(())
    })?;
    let (mut next, mut number) = (0u64, [0; 8]);
    let passed = pass.count(|| {
        write_whole(&to_child, &next.to_le_bytes())?;
        read_whole(&from_child, &mut number)?;
        in_turn(number, next)?;
        next += 1;
        Ok(())
    })?;
    write_whole(&to_child, &u64::MAX.to_le_bytes())?;
    partner.finish()?;
    Ok(passed)
}

fn in_turn(number: [u8; 8], expected: u64) -> Result<(), Failure> {
    match u64::from_le_bytes(number) {
        found if found == expected => Ok(()),
        found => Err(Failure::wrong(format!(
            "number {found} instead of {expected}"
        ))),
    }
}

/// spawn: a child that exits at once, and the wait for it.
pub fn spawn(pass: &Pass) -> Result<Passed, Failure> {
    pass.count(|| {
        let child = children::born(libc::SYS_fork, 0, 0)?;
        wait(child, children::STATUS)
    })
}

/// execl: a program that executes itself, again and again, until the time is over.
pub fn execl(pass: &Pass) -> Result<Passed, Failure> {
    let (from, to) = pipe()?;
    let start = Meter::now(pass.clock);
    let until = start + (pass.seconds * 1e9) as u64;
    let partner = Partner::start(|| {
        // The pipe's end goes through all the programs, at the descriptor that they know.
        // SAFETY: two descriptors; what was at the second is nobody's any more.
        if unsafe { libc::dup2(std::os::fd::AsRawFd::as_raw_fd(&to), TOLD) } != TOLD {
            return Err(Failure::system("dup2"));
        }
        Err(executed(0, until, pass.clock))
    })?;
    drop(to);
    let mut count = [0; 8];
    let read = File::from(from).read_exact(&mut count);
    partner.finish()?;
    read.map_err(|error| Failure::io("the count", &error))?;
    let seconds = (Meter::now(pass.clock) - start) as f64 / 1e9;
    let count = u64::from_le_bytes(count) as f64;
    Ok(Passed { count, seconds })
}

const TOLD: i32 = 9;

/// The next program; returns only where it cannot be executed.
fn executed(count: u64, until: u64, clock: ClockKind) -> Failure {
    let failed = Command::new("/proc/self/exe")
        .args(["--unixbench", "execl", clock.name()])
        .args([count.to_string(), until.to_string()])
        .exec();
    Failure::io("execve", &failed)
}

/// What such a program does: it counts itself, and executes the next or tells the count.
pub fn execl_again(clock: &str, count: u64, until: u64) -> Result<(), Failure> {
    let clock = ClockKind::find(clock).ok_or_else(|| Failure::wrong("no such clock"))?;
    if Meter::now(clock) < until {
        return Err(executed(count + 1, until, clock));
    }
    // SAFETY: the descriptor was put there by the first of these programs, for the last.
    let mut to = File::from(unsafe { OwnedFd::from_raw_fd(TOLD) });
    tell(&mut to, count + 1)
}
