//! What was counted, told as JSON: one line a program, as it ends, so that nothing is lost however QEMU ends.

use crate::c_library::{append, give_up, opened};
use crate::marks::Run;
use crate::rounds::Rounds;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ffi::c_int;

/// The file that counts are written to.
pub struct Output(c_int);

impl Output {
    /// None where no file is asked for; QEMU ends where it cannot be opened.
    pub fn open(path: &str) -> Option<Self> {
        if path.is_empty() {
            return None;
        }
        match opened(path) {
            Some(file) => Some(Self(file)),
            None => give_up(1, &format!("{path} cannot be written")),
        }
    }

    /// A program has ended. `cpus`: instructions of each since the guest started.
    /// `counted`: by function.
    pub fn run(&self, run: &mut Run, rounds: &Rounds, cpus: &[u64], counted: Option<String>) {
        let (count, sum) = (run.operations.len(), run.operations.iter().sum::<u64>());
        let [low, high] = run.middle();
        let [smallest, largest] = run.extremes();
        let idle: Vec<i64> = (0..cpus.len()).map(|cpu| rounds.idle(cpu)).collect();
        let counted = counted.map_or(String::new(), |told| format!(", \"counted\": {told}"));
        let line = format!(
            "{{\"regions\": {}, \"instructions\": {}, \"operations\": {count}, \"sum\": {sum}, \"middle\": [{low}, {high}], \
             \"extremes\": [{smallest}, {largest}], \
             \"cpus\": [{}], \"idle\": [{}], \"clock\": {}, \"rounds\": {}, \"fingerprint\": \"{:016x}\"{counted}}}\n",
            run.regions,
            run.instructions,
            list(cpus),
            list(&idle),
            rounds.start(),
            rounds.number(),
            rounds.fingerprint(),
        );
        if !append(self.0, line.as_bytes()) {
            give_up(1, "what was counted cannot be written");
        }
    }
}

fn list<T: ToString>(values: &[T]) -> String {
    let words: Vec<String> = values.iter().map(ToString::to_string).collect();
    words.join(", ")
}
