//! One system call of a program, and what its arguments lead to.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use libc::pid_t;

const WRITE: u64 = libc::SYS_write as u64;
const WRITEV: u64 = libc::SYS_writev as u64;
/// Below it a number may be a descriptor; above it, it may be an address.
const FIRST_ADDRESS: u64 = 4096;
const LONGEST_TEXT: usize = 200;
const MOST_PIECES: u64 = 1024;
const PIECE_BYTES: usize = 16;

/// A call as it began.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Call {
    /// Its number.
    pub number: u64,
    /// Its arguments.
    pub arguments: [u64; 6],
}

impl Call {
    /// What it wrote to one of these files, and which; None where it is another call, or goes elsewhere.
    pub fn written(&self, task: pid_t, bytes: u64, outputs: &[String]) -> Option<(usize, Vec<u8>)> {
        if !matches!(self.number, WRITE | WRITEV) {
            return None;
        }
        let place = descriptor(task, self.arguments[0])?;
        let output = outputs.iter().position(|output| *output == place)?;
        let mut data = Vec::new();
        if self.number == WRITE {
            data = memory(task, self.arguments[1], bytes as usize);
        } else {
            let table = memory(
                task,
                self.arguments[1],
                self.arguments[2].min(MOST_PIECES) as usize * PIECE_BYTES,
            );
            for piece in table.chunks_exact(PIECE_BYTES) {
                let (base, length) = piece.split_at(PIECE_BYTES / 2);
                let left = bytes as usize - data.len();
                data.extend(memory(task, word(base), left.min(word(length) as usize)));
            }
        }
        Some((output, data))
    }

    /// Its arguments, each with the descriptor or the text that it is.
    pub fn told(&self, task: pid_t) -> String {
        let told = self.arguments.map(|argument| {
            if argument < FIRST_ADDRESS {
                return descriptor(task, argument).map_or(argument.to_string(), |place| {
                    format!("{argument} fd {}", place.escape_debug())
                });
            }
            text(task, argument).map_or(argument.to_string(), |text| {
                format!("{argument} text {}", text.escape_debug())
            })
        });
        told.join("\t")
    }
}

fn word(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().unwrap_or_default())
}

/// What a descriptor of a task leads to: a path, or `pipe:[NUMBER]`.
pub fn descriptor(task: pid_t, number: u64) -> Option<String> {
    let link = fs::read_link(format!("/proc/{task}/fd/{number}")).ok()?;
    Some(link.to_string_lossy().into_owned())
}

fn memory(task: pid_t, address: u64, size: usize) -> Vec<u8> {
    let mut data = vec![0; size];
    let read = File::open(format!("/proc/{task}/mem"))
        .and_then(|file| file.read_at(&mut data, address))
        .unwrap_or(0);
    data.truncate(read);
    data
}

fn text(task: pid_t, address: u64) -> Option<String> {
    let data = memory(task, address, LONGEST_TEXT);
    let end = data.iter().position(|byte| *byte == 0)?;
    let text = String::from_utf8(data[..end].to_vec()).ok()?;
    (!text.is_empty() && text.chars().all(|letter| !letter.is_control())).then_some(text)
}
