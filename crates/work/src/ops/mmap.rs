//! Anonymous memory: mapped, touched, unmapped.

use std::ptr;

use crate::arguments::{Arguments, Workload};
use crate::failure::Failure;
use crate::memory::PAGE;
use crate::meter::Meter;
use crate::workload::{Domain, Parameter};

pub const WORKLOAD: Workload = Workload {
    name: "mmap",
    summary: "map anonymous memory, fault it in, unmap it",
    does: "One operation maps 16 pages of anonymous private memory, writes a byte to each (a page fault \
           each), reads the bytes next to them, which must be zero, and unmaps them. The place is the same \
           each time, far from everything else, and its page table stays. Four in a row are timed together, \
           after a pause in which the kernel finishes what it put off (in exact mode); the time is that of one.",
    system_calls: &["mmap", "munmap"],
    metric: "map, fault, unmap",
    also: &[],
    parameters: &[Parameter {
        name: "pages",
        summary: "pages of 4 KiB in one mapping",
        domain: Domain::Number { default: 16, minimum: 1, maximum: 256 },
    }],
    source: "lmbench lat_mmap and lat_pagefault",
    operations: 31,
    passes: 3,
    discarded: 1,
    spreads: false,
    fixed_layout: true,
    run,
};

/// How many mappings are made in a row and timed together. In Linux 6.18 and 7.2 every second one costs up to a third
/// more than the next, and the median of single ones lies with the one kind or the other, as chance has it.
const IN_A_ROW: usize = 4;
/// Far from where the kernel puts anything by itself, with any address-space layout.
const PLACE: usize = 0x1000_0000_0000;
/// One page table covers 2 MiB. Its last page stays mapped, so that the table does: what neighbours a mapping has
/// would otherwise decide whether page tables are made each time.
const ANCHOR: usize = PLACE + 0x20_0000 - PAGE;

fn run(arguments: &Arguments, meter: &mut Meter) -> Result<(), Failure> {
    let length = arguments.size("pages") * PAGE;
    // SAFETY: a fresh mapping of our own.
    unsafe { map(ANCHOR, PAGE)?.write_volatile(1) };
    meter.bundle(IN_A_ROW);
    meter.repeat_settled(|| (0..IN_A_ROW).try_for_each(|_| touched(length)))
}

fn touched(length: usize) -> Result<(), Failure> {
    let start = map(PLACE, length)?;
    let mut sum = 0_u8;
    for at in (0..length).step_by(PAGE) {
        // SAFETY: inside the mapping made above.
        unsafe {
            start.add(at).write_volatile(1);
            sum |= start.add(at + 1).read_volatile();
        }
    }
    // SAFETY: our own mapping, not used any more.
    if unsafe { libc::munmap(start.cast(), length) } != 0 {
        return Err(Failure::system("munmap"));
    }
    match sum {
        0 => Ok(()),
        _ => Err(Failure::wrong("fresh memory is not zero")),
    }
}

#[inline(always)]
fn map(place: usize, length: usize) -> Result<*mut u8, Failure> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
    let wanted = ptr::without_provenance_mut(place);
    // SAFETY: the kernel refuses the place if anything is there.
    let start = unsafe { libc::mmap(wanted, length, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
    match start == wanted {
        true => Ok(start.cast()),
        false => Err(Failure::system("mmap")),
    }
}
