//! The two clocks that operations are timed with.

use std::mem::MaybeUninit;

/// A clock that is read between two operations.
pub trait Clock {
    /// The time now, in the clock's unit.
    fn now() -> u64;
}

/// The time-stamp counter. In exact mode it runs at 1 GHz of guest time, where one instruction takes 1 ns: one tick
/// is one guest instruction. Read without a fence: TCG executes in order.
pub struct Tsc;

impl Clock for Tsc {
    #[inline(always)]
    fn now() -> u64 {
        // SAFETY: every x86-64 processor has RDTSC, and Linux leaves it open to user programs.
        unsafe { core::arch::x86_64::_rdtsc() }
    }
}

/// `CLOCK_MONOTONIC`, in nanoseconds, through the vDSO.
pub struct Monotonic;

impl Clock for Monotonic {
    #[inline(always)]
    fn now() -> u64 {
        let mut time = MaybeUninit::<libc::timespec>::uninit();
        // SAFETY: the kernel fills in the whole structure; CLOCK_MONOTONIC cannot fail.
        let time = unsafe {
            libc::clock_gettime(libc::CLOCK_MONOTONIC, time.as_mut_ptr());
            time.assume_init()
        };
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    }
}

/// Which clock the user asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockKind {
    /// `tsc`
    Tsc,
    /// `monotonic`
    Monotonic,
}

impl ClockKind {
    /// The name on the command line and in the output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tsc => "tsc",
            Self::Monotonic => "monotonic",
        }
    }

    /// What one tick is.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Tsc => "instructions",
            Self::Monotonic => "ns",
        }
    }

    /// The clock called `name`.
    pub fn find(name: &str) -> Option<Self> {
        [Self::Tsc, Self::Monotonic]
            .into_iter()
            .find(|clock| clock.name() == name)
    }
}
