//! Files of three sizes, some more popular than others, and who asks for them.

use std::ffi::CString;

use crate::failure::Failure;
use crate::files::Scratch;

/// The bytes of each file's kind: of sixteen files eleven, four and one.
const SIZES: [usize; 3] = [4 << 10, 32 << 10, 256 << 10];
/// As many as a request's byte can name.
pub const FILES: usize = 96;

/// Their paths.
pub struct FileSet(Vec<CString>);

impl FileSet {
    /// Make them: each has its number in all of its bytes.
    pub fn new(scratch: &Scratch) -> Result<Self, Failure> {
        let made = (0..FILES)
            .map(|number| scratch.file("file", number, &vec![number as u8; length(number)]));
        Ok(Self(made.collect::<Result<_, _>>()?))
    }

    /// The path of one.
    pub fn path(&self, number: u8) -> Result<&CString, Failure> {
        self.0
            .get(usize::from(number))
            .ok_or_else(|| Failure::wrong("a client asked for a file that is not there"))
    }
}

/// How long a file is, in bytes.
pub fn length(number: usize) -> usize {
    match number % 16 {
        15 => SIZES[2],
        12..=14 | 7 => SIZES[1],
        _ => SIZES[0],
    }
}

/// Draws files by Zipf's law: the one in place k of popularity with a weight of 1/k.
pub struct Popularity {
    state: u64,
    /// Sums of weights up to each file.
    up_to: [u32; FILES],
}

impl Popularity {
    /// A client's own draws.
    pub fn new(client: usize) -> Self {
        let mut sum = 0;
        let up_to = std::array::from_fn(|place| {
            sum += 1_000_000 / (place as u32 + 1);
            sum
        });
        Self {
            state: 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(client as u64 + 1),
            up_to,
        }
    }

    /// The next file (G. Marsaglia, Xorshift RNGs, 2003: 13, 7, 17).
    pub fn draw(&mut self) -> u8 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        let at = (self.state % u64::from(self.up_to[FILES - 1])) as u32;
        self.up_to.partition_point(|&sum| sum <= at) as u8
    }
}
