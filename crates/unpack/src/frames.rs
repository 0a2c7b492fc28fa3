//! What the host is told: frames on the port of `isa-debugcon`, as the agent sends them.
//!
//! docs/architecture/guest-protocol.md has their bytes. Only three texts are sent, so that no library is needed.

use core::arch::asm;

const DEBUGCON: u16 = 0xe9;
const DEBUG_EXIT: u16 = 0xf4;
const PVPANIC: u16 = 0x505;
const PANICKED: u8 = 1;
const MAGIC: &[u8] = b"KTF1";
const READY: u8 = 1;
const FAILED: u8 = 4;
const LONGEST: usize = 5000;
const POLYNOMIAL: u32 = 0xEDB8_8320;

/// A text that is put together.
pub struct Text {
    bytes: [u8; LONGEST],
    size: usize,
}

impl Text {
    /// Empty.
    pub const fn empty() -> Self {
        Self {
            bytes: [0; LONGEST],
            size: 0,
        }
    }

    /// Add these bytes; what is too much is left out.
    pub fn add(&mut self, more: &[u8]) -> &mut Self {
        for &byte in more.iter().take(LONGEST - self.size) {
            self.bytes[self.size] = byte;
            self.size += 1;
        }
        self
    }

    /// Add them as a part of a text in JSON: what would have to be written otherwise there is a question mark.
    pub fn add_plain(&mut self, more: &[u8]) -> &mut Self {
        for &byte in more {
            let is_plain = matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\';
            self.add(&[if is_plain { byte } else { b'?' }]);
        }
        self
    }

    /// Add a number.
    pub fn add_number(&mut self, number: u64) -> &mut Self {
        let mut digits = [0; 20];
        let mut start = digits.len();
        let mut left = number;
        loop {
            start -= 1;
            digits[start] = b'0' + (left % 10) as u8;
            left /= 10;
            if left == 0 {
                break;
            }
        }
        self.add(&digits[start..])
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.size]
    }
}

/// Say that the kernel has booted, and stop. What comes after this is done in each guest that is restored from here.
pub fn stop_here() {
    let mut text = Text::empty();
    text.add(b"{\"protocol\":1,\"release\":\"\",\"agent\":\"\",\"cpus\":0,\"memory_kib\":0,\"modules\":[],")
        .add(b"\"command_line\":\"\",\"failures\":[],\"tsc\":")
        .add_number(time_stamp())
        .add(b"}");
    send(READY, &text);
    out(PVPANIC, &[PANICKED]);
}

/// Say why it goes no further, and end QEMU with status 3.
pub fn fail(reason: &mut Text) {
    reason.add(b"\"}");
    send(FAILED, reason);
    out(DEBUG_EXIT, &[1]);
}

/// Where a reason begins.
pub fn reason() -> Text {
    let mut text = Text::empty();
    text.add(b"{\"text\":\"");
    text
}

fn send(kind: u8, payload: &Text) {
    let size = (payload.size as u32).to_le_bytes();
    let head = [kind, size[0], size[1], size[2], size[3]];
    let sum = checksum(checksum(u32::MAX, &head), payload.bytes()) ^ u32::MAX;
    out(DEBUGCON, MAGIC);
    out(DEBUGCON, &head);
    out(DEBUGCON, payload.bytes());
    out(DEBUGCON, &sum.to_le_bytes());
}

/// CRC-32 of IEEE 802.3, bit by bit.
fn checksum(sum: u32, bytes: &[u8]) -> u32 {
    bytes.iter().fold(sum, |sum, &byte| {
        (0..8).fold(sum ^ u32::from(byte), |sum, _| {
            sum >> 1 ^ if sum & 1 == 1 { POLYNOMIAL } else { 0 }
        })
    })
}

fn time_stamp() -> u64 {
    // SAFETY: reads a counter.
    unsafe { core::arch::x86_64::_rdtsc() }
}

fn out(port: u16, bytes: &[u8]) {
    // SAFETY: `rep outsb` reads rcx bytes from rsi on, which is `bytes` exactly.
    unsafe {
        asm!("rep outsb", in("dx") port, inout("rcx") bytes.len() => _, inout("rsi") bytes.as_ptr() => _,
             options(nostack, readonly))
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_zlib() {
        assert_eq!(checksum(u32::MAX, b"123456789") ^ u32::MAX, 0xCBF4_3926);
    }

    #[test]
    fn a_text_keeps_to_its_length_and_to_letters_that_json_has() {
        let mut text = Text::empty();
        text.add_plain("a\"b\\c\nä".as_bytes())
            .add_number(0)
            .add_number(120);
        assert_eq!(text.bytes(), b"a?b?c???0120");
        text.add(&[b'x'; 2 * LONGEST]);
        assert_eq!(text.bytes().len(), LONGEST);
    }
}
