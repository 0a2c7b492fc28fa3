//! Copying a file within the page cache, one block at a time: what copy-256, copy-1024 and copy-4096 share.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::FileExt;

use crate::arguments::Arguments;
use crate::failure::Failure;
use crate::files::{read_whole, write_whole, Scratch};
use crate::memory::{Pages, PAGE};
use crate::meter::Meter;
use crate::workload::{Domain, Parameter};

/// How many blocks the files have.
pub const fn blocks(default: i64) -> Parameter {
    Parameter {
        name: "blocks",
        summary:
            "blocks in each of the two files; after the last, the copy starts over at the first",
        domain: Domain::Number {
            default,
            minimum: 1,
            maximum: 1_000_000,
        },
    }
}

/// Two files whose pages are all in the page cache; one operation reads as many blocks of the first as fill a page, and
/// writes each to the same place of the second. In the end both are compared.
///
/// A page's worth of blocks, because a block's cost depends on where in its page it lies: by single blocks the median
/// would be the cost of one of the places, and jump between two.
pub fn run(arguments: &Arguments, meter: &mut Meter, block: usize) -> Result<(), Failure> {
    let blocks = arguments.size("blocks");
    let used = blocks.min(meter.planned() * (PAGE / block));
    let scratch = Scratch::new(arguments.text("path"))?;
    let mut source = filled(&scratch, "source", block * blocks, block * used, 1)?;
    let mut target = filled(&scratch, "target", block * blocks, block * used, 2)?;
    access(&mut source, &mut target, block * used)?;
    let mut buffer = Pages::new(block)?;
    let buffer = &mut buffer[..block];
    let mut next = 0;
    meter.repeat(|| {
        for _ in 0..PAGE / block {
            if next == blocks {
                rewind(&mut source)?;
                rewind(&mut target)?;
                next = 0;
            }
            read_whole(&source, buffer)?;
            write_whole(&target, buffer)?;
            next += 1;
        }
        Ok(())
    })?;
    rewind(&mut source)?;
    rewind(&mut target)?;
    compare(&mut source, &mut target, block * used)
}

const PIECE: usize = 64 * 1024;

/// A file of `size` bytes, of which the first `used` are there, and the last: how deep the kernel's tree of the file's
/// pages is depends on the last.
fn filled(
    scratch: &Scratch,
    name: &str,
    size: usize,
    used: usize,
    seed: u64,
) -> Result<File, Failure> {
    let path = scratch.path(name);
    let failed = |error: std::io::Error| Failure::io(&path.display().to_string(), &error);
    let mut options = OpenOptions::new();
    let mut file = options
        .read(true)
        .write(true)
        .create_new(true)
        .open(&path)
        .map_err(failed)?;
    file.write_all_at(&[0], size as u64 - 1).map_err(failed)?;
    let mut piece = Pages::new(PIECE)?;
    for from in (0..used).step_by(PIECE) {
        let length = PIECE.min(used - from);
        fill(&mut piece[..length], seed + from as u64);
        file.write_all(&piece[..length]).map_err(failed)?;
    }
    rewind(&mut file)?;
    Ok(file)
}

/// Read and write the pages until the kernel has seen them often enough to call them active, which costs extra.
fn access(source: &mut File, target: &mut File, used: usize) -> Result<(), Failure> {
    let mut piece = Pages::new(PIECE)?;
    for _ in 0..3 {
        for from in (0..used).step_by(PIECE) {
            let length = PIECE.min(used - from);
            read_whole(source, &mut piece[..length])?;
            piece[..length].iter_mut().for_each(|byte| *byte = !*byte);
            write_whole(target, &piece[..length])?;
        }
        rewind(source)?;
        rewind(target)?;
    }
    Ok(())
}

/// A number of its own in every 256 bytes: a block that went to the wrong place is seen.
fn fill(piece: &mut [u8], seed: u64) {
    for (at, part) in piece.chunks_mut(256).enumerate() {
        let number = (seed + at as u64)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .to_le_bytes();
        let length = part.len().min(number.len());
        part[..length].copy_from_slice(&number[..length]);
    }
}

fn rewind(file: &mut File) -> Result<(), Failure> {
    file.rewind().map_err(|error| Failure::io("lseek", &error))
}

fn compare(source: &mut File, target: &mut File, bytes: usize) -> Result<(), Failure> {
    let (mut left, mut right) = (Pages::new(PIECE)?, Pages::new(PIECE)?);
    let mut compared = 0;
    while compared < bytes {
        let length = PIECE.min(bytes - compared);
        let both = [
            (&mut *source, &mut left[..length]),
            (&mut *target, &mut right[..length]),
        ];
        for (file, piece) in both {
            file.read_exact(piece)
                .map_err(|error| Failure::io("reading back", &error))?;
        }
        if left[..length] != right[..length] {
            return Err(Failure::wrong(format!(
                "the copy differs from its source after byte {compared}"
            )));
        }
        compared += length;
    }
    Ok(())
}
