//! shell1 and shell8: one and eight scripts at once, each of seven programs that sort, dump, search and count a text.
//!
//! UnixBench's script runs in /bin/sh with the system's programs. Here the script and the programs are this program:
//! the kernel's part (fork, execve, pipes, files, wait) is the same, what the programs compute is not.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::pass::{Pass, Passed};
use crate::failure::Failure;

const LINES: usize = 100;

pub fn shell1(pass: &Pass) -> Result<Passed, Failure> {
    scripts(pass, 1)
}

pub fn shell8(pass: &Pass) -> Result<Passed, Failure> {
    scripts(pass, 8)
}

fn scripts(pass: &Pass, at_once: usize) -> Result<Passed, Failure> {
    let text = pass.directory.join("sort.src");
    fs::write(&text, source()).map_err(|error| Failure::io("sort.src", &error))?;
    pass.count(|| {
        let started: Result<Vec<Child>, Failure> = (0..at_once)
            .map(|_| start(program("script").current_dir(&pass.directory)))
            .collect();
        started?.into_iter().try_for_each(ended)
    })
}

/// Lines of words, always the same, with `the` in half of them.
fn source() -> String {
    (0..LINES)
        .map(|line| {
            format!(
                "{} {} kernel schedules work {line}\n",
                line * 7919 % 1000,
                word(line)
            )
        })
        .collect()
}

fn word(line: usize) -> &'static str {
    ["the", "a"][line % 2]
}

/// `sort >sort.$$ <sort.src; od sort.$$ | sort -n >od.$$; grep the sort.$$ | tee grep.$$ | wc >wc.$$; rm …`
fn script() -> Result<(), Failure> {
    let name = |kind: &str| format!("{kind}.{}", std::process::id());
    let (sorted, dumped, found, counted) = (name("sort"), name("od"), name("grep"), name("wc"));
    ended(start(
        program("sort")
            .stdin(open("sort.src")?)
            .stdout(create(&sorted)?),
    )?)?;
    let mut od = start(program("od").arg(&sorted).stdout(Stdio::piped()))?;
    let sort = start(
        program("sort")
            .stdin(output(&mut od)?)
            .stdout(create(&dumped)?),
    )?;
    [od, sort].into_iter().try_for_each(ended)?;
    let mut grep = start(
        program("grep")
            .args(["the", &sorted])
            .stdout(Stdio::piped()),
    )?;
    let mut tee = start(
        program("tee")
            .arg(&found)
            .stdin(output(&mut grep)?)
            .stdout(Stdio::piped()),
    )?;
    let wc = start(
        program("wc")
            .stdin(output(&mut tee)?)
            .stdout(create(&counted)?),
    )?;
    [grep, tee, wc].into_iter().try_for_each(ended)?;
    check(&counted)?;
    ended(start(
        program("rm").args([&sorted, &found, &dumped, &counted]),
    )?)
}

fn check(counted: &str) -> Result<(), Failure> {
    let said = fs::read_to_string(counted).map_err(|error| Failure::io(counted, &error))?;
    match said.split(' ').next() {
        Some(lines) if lines == (LINES / 2).to_string() => Ok(()),
        _ => Err(Failure::wrong(format!("wc says {said:?}"))),
    }
}

fn program(name: &str) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.env_clear().args(["--unixbench", name]);
    command
}

fn start(command: &mut Command) -> Result<Child, Failure> {
    command
        .spawn()
        .map_err(|error| Failure::io("a program of the script", &error))
}

fn output(child: &mut Child) -> Result<Stdio, Failure> {
    child
        .stdout
        .take()
        .map(Stdio::from)
        .ok_or_else(|| Failure::wrong("a program without an output"))
}

fn ended(mut child: Child) -> Result<(), Failure> {
    match child.wait() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure::wrong(format!("a program of the script: {status}"))),
        Err(error) => Err(Failure::io("wait", &error)),
    }
}

fn open(path: &str) -> Result<File, Failure> {
    File::open(path).map_err(|error| Failure::io(path, &error))
}

fn create(path: &str) -> Result<File, Failure> {
    File::create(path).map_err(|error| Failure::io(path, &error))
}

/// What one of the script's programs does; `None` where there is no such program.
pub fn run(name: &str, arguments: &[String]) -> Option<Result<(), Failure>> {
    let done = match (name, arguments) {
        ("script", []) => return Some(script()),
        ("sort", []) => sort(),
        ("od", [path]) => od(path),
        ("grep", [word, path]) => grep(word, path),
        ("tee", [path]) => tee(path),
        ("wc", []) => wc(),
        ("rm", paths) => paths
            .iter()
            .try_for_each(|path| fs::remove_file(Path::new(path))),
        _ => return None,
    };
    Some(done.map_err(|error| Failure::io(name, &error)))
}

fn text() -> io::Result<String> {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text)?;
    Ok(text)
}

fn say(text: &str) -> io::Result<()> {
    io::stdout().write_all(text.as_bytes())
}

fn sort() -> io::Result<()> {
    let text = text()?;
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    say(&(lines.join("\n") + "\n"))
}

fn od(path: &str) -> io::Result<()> {
    let bytes = fs::read(path)?;
    let rows = bytes.chunks(16).enumerate().map(|(row, bytes)| {
        let words: String = bytes.iter().map(|byte| format!(" {byte:03o}")).collect();
        format!("{:07o}{words}\n", row * 16)
    });
    say(&rows.collect::<String>())
}

fn grep(word: &str, path: &str) -> io::Result<()> {
    let text = fs::read_to_string(path)?;
    let found = text.lines().filter(|line| line.contains(word));
    say(&found.map(|line| format!("{line}\n")).collect::<String>())
}

fn tee(path: &str) -> io::Result<()> {
    let text = text()?;
    fs::write(path, &text)?;
    say(&text)
}

fn wc() -> io::Result<()> {
    let text = text()?;
    say(&format!(
        "{} {} {}\n",
        text.lines().count(),
        text.split_whitespace().count(),
        text.len()
    ))
}
