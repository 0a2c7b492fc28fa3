//! Making, renaming and removing files.

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};

use crate::arguments::{Arguments, Workload};
use crate::failure::Failure;
use crate::files::Scratch;
use crate::io_meter::{self, MEASURES};
use crate::memory_group::{MemoryGroup, MEMORY};
use crate::meter::Meter;
use crate::workload::{number, Domain, Parameter, DIRECTORY};

pub const WORKLOAD: Workload = Workload {
    name: "metadata",
    summary: "create, rename, stat and unlink many empty files",
    does: "One operation makes `count` empty files in `directories` directories, renames each into the next directory, \
           looks at each under its new name, and removes all, one phase after the other. With sync=yes each directory \
           is fsynced after each phase. A step is one of these calls. Every call must succeed, a file must have the \
           inode that it was made with, and at the end the directories must be empty. Give it a disk: `path`.",
    system_calls: &["open (O_CREAT)", "close", "rename", "stat", "unlink"],
    metric: "files",
    also: MEASURES,
    parameters: &[
        number("count", "files in one operation", 500, 1, 1_000_000),
        number("directories", "directories that they are in", 10, 1, 10_000),
        Parameter {
            name: "sync",
            summary: "whether the directories are fsynced after each phase",
            domain: Domain::Choice { default: "no", choices: &["no", "yes"] },
        },
        MEMORY,
        DIRECTORY,
    ],
    source: "fs_mark; mdtest; postmark",
    operations: 1,
    passes: 3,
    discarded: 1,
    spreads: false,
    fixed_layout: false,
    run,
};

fn run(arguments: &Arguments, meter: &mut Meter) -> Result<(), Failure> {
    use std::os::unix::fs::MetadataExt;
    let _limit = MemoryGroup::enter(arguments)?;
    let (files, sync) = (arguments.size("count"), arguments.text("sync") == "yes");
    let scratch = Scratch::new(arguments.text("path"))?;
    let directories: Vec<PathBuf> =
        (0..arguments.size("directories")).map(|number| scratch.path(&format!("{number:05}"))).collect();
    for directory in &directories {
        fs::create_dir(directory).map_err(|error| Failure::io("mkdir", &error))?;
    }
    let at = |number: usize| &directories[number % directories.len()];
    let made: Vec<PathBuf> = (0..files).map(|number| at(number).join(format!("made{number:08}"))).collect();
    let renamed: Vec<PathBuf> = (0..files).map(|number| at(number + 1).join(format!("name{number:08}"))).collect();
    let mut inodes = vec![0; files];
    let prepare = || directories.iter().try_for_each(|directory| empty(directory));
    let phase_over = || if sync { directories.iter().try_for_each(|directory| fsync(directory)) } else { Ok(()) };
    io_meter::measure(meter, Path::new(arguments.text("path")), arguments.clock, prepare, |(), latencies| {
        for (path, inode) in made.iter().zip(&mut inodes) {
            let file = latencies.step(|| {
                OpenOptions::new().write(true).create_new(true).open(path).map_err(|error| Failure::io("create", &error))
            })?;
            *inode = file.metadata().map_err(|error| Failure::io("fstat", &error))?.ino();
        }
        phase_over()?;
        for (old, new) in made.iter().zip(&renamed) {
            latencies.step(|| fs::rename(old, new).map_err(|error| Failure::io("rename", &error)))?;
        }
        phase_over()?;
        for (path, inode) in renamed.iter().zip(&inodes) {
            let found = latencies.step(|| fs::metadata(path).map_err(|error| Failure::io("stat", &error)))?;
            if found.ino() != *inode {
                return Err(Failure::wrong(format!("{} is another file", path.display())));
            }
        }
        for path in &renamed {
            latencies.step(|| fs::remove_file(path).map_err(|error| Failure::io("unlink", &error)))?;
        }
        phase_over()
    })
}

fn fsync(directory: &Path) -> Result<(), Failure> {
    File::open(directory).and_then(|opened| opened.sync_all()).map_err(|error| Failure::io("fsync", &error))
}

fn empty(directory: &Path) -> Result<(), Failure> {
    let mut entries = fs::read_dir(directory).map_err(|error| Failure::io("readdir", &error))?;
    match entries.next() {
        None => Ok(()),
        Some(_) => Err(Failure::wrong(format!("{} is not empty", directory.display()))),
    }
}
