//! A build: a driver, a compiler and an assembler for each source.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::arguments::{Arguments, Workload};
use crate::compilation::{compile, header, HEADERS, INCLUDED, LENGTH};
use crate::crew::Crew;
use crate::failure::Failure;
use crate::files::Scratch;
use crate::shared::Shared;
use crate::workload::{DIRECTORY, PROCESSES};

/// Sources of the tree: they are compiled by turns.
const SOURCES: usize = 100;

pub const WORKLOAD: Workload = Workload {
    name: "build1",
    summary: "compile sources of one tree: a tree of processes for each, as a kernel's build has it",
    does: "Takes the next source of one tree (100 sources in one directory, 64 headers) and compiles it: a driver is \
           started, which starts the compiler and then the assembler, each a program of its own (execve). The \
           compiler reads the source and 24 headers, each looked for in three directories, touches 200 pages, \
           computes with each byte, and writes a file that the assembler makes an object of. What \
           they compute is not C. Tasks are the jobs of `make -j`. Each object must have its length.",
    system_calls: &[
        "vfork, execve, wait4 (driver, compiler, assembler)",
        "stat, open, read, close (source, headers)",
        "mmap, munmap",
        "open, write, close (assembly, object)",
        "unlink",
    ],
    metric: "source",
    also: &[],
    parameters: &[DIRECTORY],
    kinds: PROCESSES,
    source: "the process tree of a kernel's build (make -j), as Documentation/kbuild and gcc -v show it",
    operations: 3,
    run,
};

fn run(arguments: &Arguments, crew: &mut Crew) -> Result<(), Failure> {
    let scratch = Scratch::new(arguments.text("path"))?;
    let tree = scratch.path("tree", 0);
    let tree = Path::new(OsStr::from_bytes(tree.as_bytes()));
    plant(tree).map_err(|error| Failure::wrong(format!("{}: {error}", tree.display())))?;
    let next = Shared::<AtomicU32>::new(1)?;
    crew.measure(|task| {
        let object = tree.join(format!("source/object-{:03}.o", task.index));
        let next = &next[0];
        Ok(move || {
            let number = next.fetch_add(1, Ordering::Relaxed) as usize % SOURCES;
            compile(&tree.join(source(number)), &object)
        })
    })?;
    Ok(())
}

fn source(number: usize) -> String {
    format!("source/source-{number:03}.c")
}

fn plant(tree: &Path) -> std::io::Result<()> {
    fs::create_dir(tree)?;
    INCLUDED.iter().chain(&["source"]).try_for_each(|place| fs::create_dir(tree.join(place)))?;
    let last = tree.join(INCLUDED[INCLUDED.len() - 1]);
    (0..HEADERS).try_for_each(|number| fs::write(last.join(header(number)), [number as u8; LENGTH]))?;
    (0..SOURCES).try_for_each(|number| fs::write(tree.join(source(number)), [number as u8; LENGTH]))
}
