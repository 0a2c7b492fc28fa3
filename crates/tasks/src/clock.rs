//! The clocks that tasks read.

/// What time is read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The time-stamp counter: 1 GHz of guest time in ktrial's exact modes.
    Tsc,
    /// `CLOCK_MONOTONIC`.
    Monotonic,
}

impl Clock {
    /// The clock called `name`.
    pub fn find(name: &str) -> Option<Self> {
        [Self::Tsc, Self::Monotonic]
            .into_iter()
            .find(|clock| clock.name() == name)
    }

    /// The name on the command line and in the report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tsc => "tsc",
            Self::Monotonic => "monotonic",
        }
    }

    /// What one tick is: on one CPU that counts instructions, an instruction.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Tsc => "instructions",
            Self::Monotonic => "ns",
        }
    }

    /// The time now, in nanoseconds.
    #[inline(always)]
    pub fn now(self) -> u64 {
        match self {
            // SAFETY: every x86-64 processor has RDTSC, and Linux leaves it open to user programs.
            Self::Tsc => unsafe { core::arch::x86_64::_rdtsc() },
            Self::Monotonic => monotonic(),
        }
    }
}

fn monotonic() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel fills in the structure; CLOCK_MONOTONIC cannot fail.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
