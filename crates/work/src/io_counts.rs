//! What the kernel counted while an operation did input and output: pages read and evicted, requests, switches.

use std::fs;
use std::path::{Path, PathBuf};

use crate::block_device::{self, Reads};
use crate::failure::Failure;
use crate::meter::Meter;
use crate::workload::Measure;

const fn fewer(name: &'static str, unit: &'static str) -> Measure {
    Measure {
        name,
        unit,
        higher_is_better: false,
    }
}

/// What was read from block devices, by whatever read it (`pgpgin` of /proc/vmstat).
pub const READ: Measure = fewer("read", "KiB");
/// Requests that the device below the workload's directory was asked to read.
pub const REQUESTS: Measure = fewer("read requests", "requests");
/// What was read by that device, for each of the requests.
pub const READ_SIZE: Measure = Measure {
    name: "average read size",
    unit: "KiB",
    higher_is_better: true,
};
/// Pages that were read again soon after they had been evicted.
pub const REFAULTS: Measure = fewer("refaults", "pages");
/// Pages that the kernel took for often used.
pub const ACTIVATIONS: Measure = fewer("activations", "pages");
/// Pages of files that were taken out of the page cache to make room.
pub const EVICTIONS: Measure = fewer("evictions", "pages");
/// What was written to block devices.
pub const WRITTEN: Measure = fewer("written", "KiB");
/// Of all tasks, the kernel's own too.
pub const SWITCHES: Measure = fewer("context switches", "switches");
/// Pages.
pub const ALLOCATIONS: Measure = fewer("allocations", "pages");
/// Steps (reads, requests, transactions…) by the guest's own time in exact mode, in which the disk's answers count.
pub const RATE: Measure = Measure {
    name: "rate",
    unit: "1/s",
    higher_is_better: true,
};

/// Everything known at one moment.
#[derive(Clone, Debug, Default)]
struct Moment {
    read: u64,
    written: u64,
    refaults: u64,
    activations: u64,
    evictions: u64,
    allocations: u64,
    switches: u64,
    disk: Option<Reads>,
}

/// Reads the kernel's counters around operations, and keeps the differences.
pub struct Counts {
    stat_file: Option<PathBuf>,
    before: Moment,
    found: Vec<(Moment, Moment)>,
}

impl Counts {
    /// For a workload whose files lie in `directory`.
    pub fn new(directory: &Path) -> Self {
        Self {
            stat_file: block_device::stat_file(directory),
            before: Moment::default(),
            found: Vec::new(),
        }
    }

    /// An operation is about to begin.
    pub fn begin(&mut self) -> Result<(), Failure> {
        self.before = self.now()?;
        Ok(())
    }

    /// It is over.
    pub fn end(&mut self) -> Result<(), Failure> {
        let now = self.now()?;
        self.found.push((self.before.clone(), now));
        Ok(())
    }

    /// Hand all to the meter. Without a disk nothing is told of one; nor by a driver that does not count (brd).
    pub fn record(&self, meter: &mut Meter) {
        let requests = |moment: &Moment| moment.disk.unwrap_or_default();
        let counted = self
            .found
            .iter()
            .any(|(before, after)| requests(after) != requests(before));
        let read_something = self
            .found
            .iter()
            .any(|(before, after)| after.read != before.read);
        for (before, after) in &self.found {
            meter.record(READ.name, rise(before.read, after.read));
            if self.stat_file.is_some() && (counted || !read_something) {
                let (before, after) = (requests(before), requests(after));
                let (number, sectors) = (
                    rise(before.requests, after.requests),
                    rise(before.sectors, after.sectors),
                );
                meter.record(REQUESTS.name, number);
                meter.record(
                    READ_SIZE.name,
                    if number > 0.0 {
                        sectors / 2.0 / number
                    } else {
                        0.0
                    },
                );
            }
            meter.record(REFAULTS.name, rise(before.refaults, after.refaults));
            meter.record(
                ACTIVATIONS.name,
                rise(before.activations, after.activations),
            );
            meter.record(EVICTIONS.name, rise(before.evictions, after.evictions));
            meter.record(WRITTEN.name, rise(before.written, after.written));
            meter.record(SWITCHES.name, rise(before.switches, after.switches));
            meter.record(
                ALLOCATIONS.name,
                rise(before.allocations, after.allocations),
            );
        }
    }

    fn now(&self) -> Result<Moment, Failure> {
        // Counters of CPUs that have not been added up yet are, by a read; only root may, and others see them late.
        let _ = fs::read("/proc/sys/vm/stat_refresh");
        let vmstat = text("/proc/vmstat")?;
        let mut moment = of_vmstat(&vmstat);
        moment.switches = number_after(&text("/proc/stat")?, "ctxt").unwrap_or_default();
        moment.disk = self.stat_file.as_deref().and_then(block_device::reads);
        Ok(moment)
    }
}

fn rise(before: u64, after: u64) -> f64 {
    after.saturating_sub(before) as f64
}

fn text(path: &str) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(|error| Failure::io(path, &error))
}

fn of_vmstat(text: &str) -> Moment {
    let mut moment = Moment::default();
    for (name, number) in text.lines().filter_map(|line| line.split_once(' ')) {
        let number: u64 = number.parse().unwrap_or_default();
        match name {
            "pgpgin" => moment.read = number,
            "pgpgout" => moment.written = number,
            // `workingset_refault` until 5.9, which did not tell files from swapped memory.
            "workingset_refault_file" | "workingset_refault" => moment.refaults = number,
            "pgactivate" => moment.activations = number,
            "pgsteal_file" => moment.evictions = number,
            _ if name.starts_with("pgalloc_") => moment.allocations += number,
            _ => {}
        }
    }
    moment
}

fn number_after(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vmstat_is_read_by_the_kernels_names() {
        let moment = of_vmstat("pgpgin 12\npgalloc_dma 3\npgalloc_normal 4\npgsteal_file 9\nworkingset_refault_file 5\n");
        assert_eq!(
            (
                moment.read,
                moment.allocations,
                moment.evictions,
                moment.refaults
            ),
            (12, 7, 9, 5)
        );
    }

    #[test]
    fn a_number_is_found_by_its_name() {
        assert_eq!(
            number_after("cpu 1 2\nctxt 77\nbtime 3\n", "ctxt"),
            Some(77)
        );
    }
}
