//! One pass of a test: for a number of seconds, told by an alarm, as in UnixBench; each copy in a process of its own.

use std::io::{Read, Write};
use std::mem::MaybeUninit;
use std::path::PathBuf;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::clock::ClockKind;
use crate::failure::Failure;
use crate::files;
use crate::meter::Meter;
use crate::processes::{fork_worker, reap_any};

/// What a test is given.
pub struct Pass {
    /// How long it runs.
    pub seconds: f64,
    /// The clock that it is timed with.
    pub clock: ClockKind,
    /// A directory of its own.
    pub directory: PathBuf,
}

/// What came out: UnixBench's COUNT and TIME.
#[derive(Clone, Copy, Debug)]
pub struct Passed {
    /// How often, or the rate where the test works that out itself.
    pub count: f64,
    /// For how long.
    pub seconds: f64,
}

static EXPIRED: AtomicBool = AtomicBool::new(false);

extern "C" fn expire(_: libc::c_int) {
    EXPIRED.store(true, Ordering::Relaxed);
}

impl Pass {
    /// How often `operation` is done until the time is over.
    pub fn count(
        &self,
        mut operation: impl FnMut() -> Result<(), Failure>,
    ) -> Result<Passed, Failure> {
        let mut count = 0u64;
        let start = Meter::now(self.clock);
        alarm(self.seconds)?;
        while !expired() {
            operation()?;
            count += 1;
        }
        let seconds = (Meter::now(self.clock) - start) as f64 / 1e9;
        Ok(Passed {
            count: count as f64,
            seconds,
        })
    }
}

/// Whether the alarm has rung.
#[inline(always)]
pub fn expired() -> bool {
    EXPIRED.load(Ordering::Relaxed)
}

/// Let `expired` come true in so many seconds.
pub fn alarm(seconds: f64) -> Result<(), Failure> {
    EXPIRED.store(false, Ordering::Relaxed);
    // SAFETY: a handler that only stores a flag; calls that it interrupts are begun again.
    let answer = unsafe {
        let mut action: libc::sigaction = MaybeUninit::zeroed().assume_init();
        action.sa_sigaction = expire as extern "C" fn(libc::c_int) as usize;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(libc::SIGALRM, &action, ptr::null_mut())
    };
    let once = libc::itimerval {
        it_interval: libc::timeval {
            tv_sec: 0,
            tv_usec: 0,
        },
        it_value: libc::timeval {
            tv_sec: seconds as libc::time_t,
            tv_usec: (seconds.fract() * 1e6) as libc::suseconds_t,
        },
    };
    // SAFETY: a valid structure; nobody else uses this timer.
    match answer | unsafe { libc::setitimer(libc::ITIMER_REAL, &once, ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(Failure::system("setitimer")),
    }
}

/// Run one pass in as many processes at once: their counts are added, the mean of their times is taken.
pub fn in_copies(
    copies: usize,
    pass: impl Fn(usize) -> Result<Passed, Failure>,
) -> Result<Passed, Failure> {
    let (from, to) = files::pipe()?;
    for copy in 0..copies {
        fork_worker(|| {
            let Passed { count, seconds } = pass(copy)?;
            let mut told = [0; 16];
            told[..8].copy_from_slice(&count.to_le_bytes());
            told[8..].copy_from_slice(&seconds.to_le_bytes());
            files::write_whole(&to, &told)
        })?;
    }
    drop(to);
    let mut told = Vec::new();
    std::fs::File::from(from)
        .read_to_end(&mut told)
        .map_err(|error| Failure::io("a copy's result", &error))?;
    for _ in 0..copies {
        reap_any()?;
    }
    let number = |bytes: &[u8]| f64::from_le_bytes(bytes.try_into().expect("eight bytes"));
    let results = told.chunks_exact(16);
    if results.len() != copies {
        return Err(Failure::wrong("a copy ended without a result"));
    }
    Ok(Passed {
        count: results.clone().map(|one| number(&one[..8])).sum(),
        seconds: results.map(|one| number(&one[8..])).sum::<f64>() / copies as f64,
    })
}

/// Write a number where the parent reads it: what a program that was executed has to say.
pub fn tell(file: &mut impl Write, count: u64) -> Result<(), Failure> {
    file.write_all(&count.to_le_bytes())
        .map_err(|error| Failure::io("the pipe", &error))
}
