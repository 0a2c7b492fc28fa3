//! What the guest says of itself.

use std::fs;

use nix::time::{clock_gettime, ClockId};
use wire::boot::{BootFailure, Ready};
use wire::PROTOCOL;

/// The `ready` frame's payload. A file that this kernel does not have leaves its field empty.
pub fn describe(modules: Vec<String>, failures: Vec<BootFailure>) -> Ready {
    Ready {
        protocol: PROTOCOL,
        release: line("/proc/sys/kernel/osrelease"),
        agent: env!("CARGO_PKG_VERSION").into(),
        cpus: cpus_online(&line("/sys/devices/system/cpu/online")).unwrap_or(1),
        memory_kib: total_memory(&fs::read_to_string("/proc/meminfo").unwrap_or_default())
            .unwrap_or(0),
        modules,
        command_line: line("/proc/cmdline"),
        failures,
        tsc: time_stamp(),
    }
}

fn time_stamp() -> u64 {
    // SAFETY: every x86-64 CPU has a time-stamp counter, and the agent does not forbid itself to read it.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Guest nanoseconds since the kernel's clock began.
pub fn uptime_ns() -> u64 {
    clock_gettime(ClockId::CLOCK_BOOTTIME).map_or(0, |now| {
        now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
    })
}

fn line(path: &str) -> String {
    fs::read_to_string(path)
        .unwrap_or_default()
        .trim_end()
        .into()
}

/// How many CPUs a list like `0-1,3` holds.
fn cpus_online(list: &str) -> Option<u32> {
    list.split(',')
        .map(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            Some(last.parse::<u32>().ok()? - first.parse::<u32>().ok()? + 1)
        })
        .sum()
}

fn total_memory(meminfo: &str) -> Option<u64> {
    let rest = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    rest.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists_are_counted() {
        let counted = ["0", "0-3", "0-1,3", "0,2-4,7", ""].map(cpus_online);
        assert_eq!(counted, [Some(1), Some(4), Some(3), Some(5), None]);
    }

    #[test]
    fn memory_is_what_the_kernel_manages() {
        assert_eq!(
            total_memory("MemTotal:         494000 kB\nMemFree: 1 kB\n"),
            Some(494_000)
        );
        assert_eq!(total_memory(""), None);
    }
}
