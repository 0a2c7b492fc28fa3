//! fstime, fsbuffer, fsdisk: copying a file, block by block, in KiB a second. They differ in the size of block and file.

use std::fs::{File, OpenOptions};
use std::io::Seek;
use std::path::Path;

use super::pass::{alarm, expired, Pass, Passed};
use crate::failure::Failure;
use crate::files::{read_whole, write_whole};
use crate::meter::Meter;

const PRIMING_SECONDS: f64 = 2.0;

pub fn fstime(pass: &Pass) -> Result<Passed, Failure> {
    copy(pass, 1024, 2000)
}

pub fn fsbuffer(pass: &Pass) -> Result<Passed, Failure> {
    copy(pass, 256, 500)
}

pub fn fsdisk(pass: &Pass) -> Result<Passed, Failure> {
    copy(pass, 4096, 8000)
}

/// Write the first file and read it for two seconds each, then copy it to the second until the time is over. At the
/// end of the file all start over at its beginning.
fn copy(pass: &Pass, block: usize, blocks: usize) -> Result<Passed, Failure> {
    let mut source = made(&pass.directory, "source")?;
    let mut target = made(&pass.directory, "target")?;
    let mut buffer = vec![0x5a; block];
    let priming = PRIMING_SECONDS.min(pass.seconds);
    // At least one whole round, however short: what is read must have been written.
    rounds(priming, blocks, true, &mut [&mut source], |files| {
        write_whole(files[0], &buffer)
    })?;
    rewind(&mut source)?;
    rounds(priming, blocks, false, &mut [&mut source], |files| {
        read_whole(files[0], &mut buffer)
    })?;
    rewind(&mut source)?;
    let start = Meter::now(pass.clock);
    let copied = rounds(
        pass.seconds,
        blocks,
        false,
        &mut [&mut source, &mut target],
        |files| {
            read_whole(files[0], &mut buffer)?;
            write_whole(files[1], &buffer)
        },
    )?;
    let seconds = (Meter::now(pass.clock) - start) as f64 / 1e9;
    if buffer.iter().any(|byte| *byte != 0x5a) {
        return Err(Failure::wrong("what was read is not what was written"));
    }
    Ok(Passed {
        count: (copied * block) as f64 / 1024.0 / seconds,
        seconds,
    })
}

/// Do `one` until the time is over; after every `blocks` times all files start over. Returns how often.
fn rounds(
    seconds: f64,
    blocks: usize,
    whole: bool,
    files: &mut [&mut File],
    mut one: impl FnMut(&mut [&mut File]) -> Result<(), Failure>,
) -> Result<usize, Failure> {
    let mut done = 0;
    alarm(seconds)?;
    while !expired() || (whole && done < blocks) {
        if done > 0 && done % blocks == 0 {
            for file in files.iter_mut() {
                rewind(file)?;
            }
        }
        one(files)?;
        done += 1;
    }
    Ok(done)
}

fn rewind(file: &mut File) -> Result<(), Failure> {
    file.rewind().map_err(|error| Failure::io("lseek", &error))
}

fn made(directory: &Path, name: &str) -> Result<File, Failure> {
    let path = directory.join(name);
    let made = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(&path);
    made.map_err(|error| Failure::io(&path.display().to_string(), &error))
}
