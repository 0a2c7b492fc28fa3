//! The verbs of a target, as data, and what comes of them: `ktrial.target.steps` in Python, field by field.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "lowercase")]
pub enum Step {
    /// Write a kernel's file, and read it back.
    Write(Write),
    /// Read a kernel's file.
    Read(Read),
    /// Run a program to its end.
    Run(Run),
    /// Start a program that goes on during the steps after it.
    Start(Start),
    /// End a program that was started.
    Stop(Stop),
    /// Put a file into the target.
    Push(Push),
    /// Bring a file back.
    Collect(Collect),
    /// Make a directory.
    Directory(MakeDirectory),
    /// Mount a file system.
    Mount(Mount),
    /// Load a module.
    Module(LoadModule),
    /// Read all small files below some directories.
    Walk(Walk),
}

impl Step {
    /// The step's `do`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Write(_) => "write",
            Self::Read(_) => "read",
            Self::Run(_) => "run",
            Self::Start(_) => "start",
            Self::Stop(_) => "stop",
            Self::Push(_) => "push",
            Self::Collect(_) => "collect",
            Self::Directory(_) => "directory",
            Self::Mount(_) => "mount",
            Self::Module(_) => "module",
            Self::Walk(_) => "walk",
        }
    }
}

/// Write `value` to a kernel's file, and read it back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Write {
    /// The file.
    pub path: String,
    /// Written as it is, in one system call.
    pub value: String,
}

/// Read a kernel's file (at most 1 MiB).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Read {
    /// The file.
    pub path: String,
}

/// Run a program to its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Its whole environment.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Where it starts.
    #[serde(default = "root")]
    pub directory: String,
    /// Guest nanoseconds after which it is killed; 0: no limit.
    #[serde(default)]
    pub limit_ns: u64,
    /// 0: fixed address-space layout; otherwise address-space randomization on, seeded with this.
    #[serde(default)]
    pub layout_seed: u64,
    /// Guest nanoseconds waited before it starts.
    #[serde(default)]
    pub start_offset_ns: u64,
    /// Files of counters, read before and after.
    #[serde(default)]
    pub watch: Vec<String>,
    /// Files that are read whole, again and again; none: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<Sampling>,
}

/// Files that are read around a program, and at an interval while it runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sampling {
    /// Read at every moment.
    pub files: Vec<String>,
    /// Read before and after only: these take long.
    #[serde(default)]
    pub around: Vec<String>,
    /// Nanoseconds by the monotonic clock; 0: only before and after.
    #[serde(default)]
    pub every_ns: u64,
}

fn root() -> String {
    "/".into()
}

/// Start a program that goes on during the steps after it, whatever these start and end, and wait until a file says
/// that it is ready.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// What it is called in the step that ends it.
    pub name: String,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Its whole environment.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Where it starts.
    #[serde(default = "root")]
    pub directory: String,
    /// The file that is waited for; empty: it is not waited for.
    #[serde(default)]
    pub path: String,
    /// What that file says then, without its last newline.
    #[serde(default)]
    pub value: String,
    /// Guest nanoseconds after which the file has not said so.
    #[serde(default = "ten_seconds")]
    pub limit_ns: u64,
}

/// End a program that was started: SIGINT, and SIGKILL after the limit; then wait until a file says that it is gone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stop {
    /// What it was called when it was started.
    pub name: String,
    /// As for the start.
    #[serde(default)]
    pub path: String,
    /// As for the start.
    #[serde(default)]
    pub value: String,
    /// Guest nanoseconds that its end, and the file, may each take.
    #[serde(default = "ten_seconds")]
    pub limit_ns: u64,
}

fn ten_seconds() -> u64 {
    10_000_000_000
}

/// Put a file into the target; directories above it are made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Push {
    /// The file.
    pub path: String,
    /// Its content.
    pub base64: String,
    /// Its permissions.
    #[serde(default = "ordinary_mode")]
    pub mode: u32,
}

fn ordinary_mode() -> u32 {
    0o644
}

/// Bring a file back (at most 64 MiB).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Collect {
    /// The file.
    pub path: String,
}

/// Make a directory, and those above it. In configfs that makes an object of the kernel's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MakeDirectory {
    /// The directory; one that is there already is no error.
    pub path: String,
}

/// Mount a file system; the mount point is made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mount {
    /// `ext4`, `tmpfs`…
    pub fstype: String,
    /// The device, or any word where there is none.
    pub source: String,
    /// The mount point.
    pub path: String,
    /// As for `mount -o`.
    #[serde(default)]
    pub options: String,
}

/// Load a module (a file in the guest); one that is loaded already is no error.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadModule {
    /// The file, not compressed.
    pub path: String,
    /// As on insmod's command line.
    #[serde(default)]
    pub parameters: String,
}

/// Read all small files below some directories: settings and their values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Walk {
    /// Directories or files; a component `*` stands for every name.
    pub roots: Vec<String>,
    /// Names of files and directories that are not even opened, wherever they are.
    #[serde(default)]
    pub skip: Vec<String>,
    /// A longer file is left out.
    #[serde(default = "small_file")]
    pub limit_bytes: u64,
    /// Files that are read at most.
    #[serde(default = "many_files")]
    pub limit_files: u64,
    /// Nanoseconds by the monotonic clock after which it stops.
    #[serde(default = "twenty_seconds")]
    pub limit_ns: u64,
}

fn small_file() -> u64 {
    4096
}

fn many_files() -> u64 {
    20_000
}

fn twenty_seconds() -> u64 {
    20_000_000_000
}

/// Why a step failed: the kernel's own answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// 0 where no system call failed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub errno: i32,
    /// `EINVAL`, `ENOENT`…; empty where no system call failed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub name: String,
    /// What was tried, and the answer.
    pub text: String,
}

/// How much each number on each line of a file of counters rose: line's first word → rises.
pub type Rises = BTreeMap<String, Vec<f64>>;

/// What came of one step. Fields at their defaults are left out of the JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepResult {
    /// Index into the plan's steps.
    pub step: u32,
    /// The step's `do`.
    pub r#do: String,
    /// None where the step succeeded. A program that ends with another status than 0 is no failure of its step.
    #[serde(default, skip_serializing_if = "is_default")]
    pub failure: Option<Failure>,
    /// Write: the value that was there, without its last newline.
    #[serde(default, skip_serializing_if = "is_default")]
    pub before: String,
    /// Write: the value read back, without its last newline.
    #[serde(default, skip_serializing_if = "is_default")]
    pub after: String,
    /// Read: the text. Collect: base64. Start, stop: what the file that was waited for says, without its last newline.
    #[serde(default, skip_serializing_if = "is_default")]
    pub content: String,
    /// Run, start, stop: the exit status.
    #[serde(default, skip_serializing_if = "is_default")]
    pub exit: Option<i32>,
    /// Run, start, stop: the signal that ended the program.
    #[serde(default, skip_serializing_if = "is_default")]
    pub signal: Option<i32>,
    /// Run, start, stop: it was killed for running longer than its limit.
    #[serde(default, skip_serializing_if = "is_default")]
    pub timed_out: bool,
    /// Run: how many processes the kernel killed meanwhile because memory ran out.
    #[serde(default, skip_serializing_if = "is_default")]
    pub oom_kills: u64,
    /// Run, start, stop: what it wrote; bytes that are not UTF-8 are replaced.
    #[serde(default, skip_serializing_if = "is_default")]
    pub stdout: String,
    /// Run, start, stop: the same for standard error.
    #[serde(default, skip_serializing_if = "is_default")]
    pub stderr: String,
    /// Run: nanoseconds by the monotonic clock, from before the fork to after the wait.
    #[serde(default, skip_serializing_if = "is_default")]
    pub wall_ns: u64,
    /// Run: wait4's struct rusage.
    #[serde(default, skip_serializing_if = "is_default")]
    pub rusage: BTreeMap<String, f64>,
    /// Run: file → rises.
    #[serde(default, skip_serializing_if = "is_default")]
    pub watched: BTreeMap<String, Rises>,
    /// Walk: file → text, without its last newline.
    #[serde(default, skip_serializing_if = "is_default")]
    pub files: BTreeMap<String, String>,
    /// Walk: file or root → why it is not among `files`: the errno's name, `changing`, `long`, `unreadable`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub left_out: BTreeMap<String, String>,
    /// Run: what was sampled.
    #[serde(default, skip_serializing_if = "is_default")]
    pub sampled: Option<SampledFiles>,
}

/// What some files said at several moments, and what it cost to read them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SampledFiles {
    /// The interval in the end.
    pub every_ns: u64,
    /// CPU time of the reader for the moments while programs ran.
    pub cost_ns: u64,
    /// How many of those there were, dropped ones too.
    pub readings: u64,
    /// Nanoseconds since the first moment, which is before the program; the last one is after it.
    pub at_ns: Vec<u64>,
    /// File → its text at each moment; empty where it was not, or could not be, read then.
    pub texts: BTreeMap<String, Vec<String>>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
