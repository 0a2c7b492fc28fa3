//! What a compiler does to the kernel: a driver that runs the compiler proper and the assembler, each a program.
//!
//! They are this program under other names (`tasks compile WHAT SOURCE OBJECT`); what they compute is not C.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::{must, Failure};
use crate::memory::{Mapping, PAGE};

/// The command line of the programs begins with it.
pub const COMPILE: &str = "compile";
/// Where headers are looked for, in this order; they are in the last.
pub const INCLUDED: [&str; 3] = ["arch", "generated", "include"];
/// Headers that there are, and those that a source includes.
pub const HEADERS: usize = 64;
const INCLUDES: usize = 24;
/// Bytes of a header, and of a source.
pub const LENGTH: usize = 4_000;
/// The compiler's memory, in pages, each of which it touches.
const PAGES: usize = 200;
/// How often the compiler goes over all that it has read.
const PASSES: usize = 1;
const THIS: &str = "/proc/self/exe";

/// Compile `source`, in the tree of its directory: the driver, the compiler, the assembler. Checks the object.
pub fn compile(source: &Path, object: &Path) -> Result<(), Failure> {
    run("driver", source, object)?;
    let length = fs::metadata(object)
        .map_err(|error| wrong(object, &error))?
        .len();
    must(
        length as usize == (INCLUDES + 1) * LENGTH,
        "an object has another length than its source asks for",
    )
}

/// Do what the command line says, which begins with `COMPILE`.
pub fn program(words: &[OsString]) -> Result<(), Failure> {
    let [_, what, source, object] = words else {
        return Err(Failure::wrong(
            "compile: give a program, a source and an object",
        ));
    };
    let (source, object) = (Path::new(source), Path::new(object));
    match what.to_str() {
        Some("driver") => driver(source, object),
        Some("compiler") => compiler(source, object),
        Some("assembler") => assembler(source, object),
        _ => Err(Failure::wrong(
            "compile: there are a driver, a compiler and an assembler",
        )),
    }
}

fn run(what: &str, from: &Path, to: &Path) -> Result<(), Failure> {
    let words: [&OsStr; 4] = [COMPILE.as_ref(), what.as_ref(), from.as_ref(), to.as_ref()];
    let ended = Command::new(THIS).args(words).status();
    let ended = ended.map_err(|error| Failure::wrong(format!("{THIS}: {error}")))?;
    must(ended.success(), "a program of the compiler failed")
}

fn driver(source: &Path, object: &Path) -> Result<(), Failure> {
    let assembly = object.with_extension("s");
    run("compiler", source, &assembly)?;
    run("assembler", &assembly, object)?;
    fs::remove_file(&assembly).map_err(|error| wrong(&assembly, &error))
}

fn compiler(source: &Path, assembly: &Path) -> Result<(), Failure> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    Mapping {
        length: PAGES * PAGE,
        flags,
        file: -1,
    }
    .touched()?;
    let tree = source
        .parent()
        .and_then(Path::parent)
        .ok_or_else(|| Failure::wrong("a source outside of a tree"))?;
    let mut text = fs::read(source).map_err(|error| wrong(source, &error))?;
    // Which headers it includes is in the source's first byte.
    let first = usize::from(text[0]);
    for number in 0..INCLUDES {
        let header = found(tree, (first + number * 5) % HEADERS)?;
        text.extend(fs::read(&header).map_err(|error| wrong(&header, &error))?);
    }
    let mut sum = 0_u64;
    for _ in 0..PASSES {
        sum = text.iter().fold(sum, |sum, &byte| {
            black_box(sum.wrapping_mul(31).wrapping_add(u64::from(byte)))
        });
    }
    text[..8].copy_from_slice(&sum.to_le_bytes());
    fs::write(assembly, text).map_err(|error| wrong(assembly, &error))
}

/// The header's path, looked for in each directory.
fn found(tree: &Path, number: usize) -> Result<PathBuf, Failure> {
    let name = header(number);
    let places = INCLUDED.iter().map(|place| tree.join(place).join(&name));
    let there = places.into_iter().find(|path| path.exists());
    there.ok_or_else(|| Failure::wrong(format!("{name}: no such header")))
}

/// The name of a header.
pub fn header(number: usize) -> String {
    format!("header-{number:02}.h")
}

fn assembler(assembly: &Path, object: &Path) -> Result<(), Failure> {
    let text = fs::read(assembly).map_err(|error| wrong(assembly, &error))?;
    let turned: Vec<u8> = text.iter().map(|byte| byte.rotate_left(3)).collect();
    fs::write(object, turned).map_err(|error| wrong(object, &error))
}

fn wrong(path: &Path, error: &std::io::Error) -> Failure {
    Failure::wrong(format!("{}: {error}", path.display()))
}
