//! The files that are served: three sizes, each with its popular ones.

use std::fs::File;
use std::path::PathBuf;

use crate::draws::{Random, Zipf};
use crate::failure::Failure;
use crate::files::Scratch;
use crate::stamped;

/// Bytes in a file of each class: one page, as most pages of a web site; a picture; a piece of a video.
pub const CLASSES: [usize; 3] = [4 << 10, 32 << 10, 1 << 20];
/// Of 100 requests, how many are for each class.
const SHARES: [usize; 3] = [64, 30, 6];

/// One file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Name {
    /// Its place in `CLASSES`.
    pub class: usize,
    /// Its number in the class.
    pub number: usize,
}

/// All files, and how often each is asked for.
pub struct FileSet {
    scratch: Scratch,
    numbers: [usize; 3],
    laws: [Zipf; 3],
}

impl FileSet {
    /// Make so many files of each class, on disk and out of the page cache.
    pub fn new(parent: &str, numbers: [usize; 3], exponent: f64) -> Result<Self, Failure> {
        let laws = numbers.map(|number| Zipf::new(number, exponent));
        let set = Self {
            scratch: Scratch::new(parent)?,
            numbers,
            laws,
        };
        for (class, size) in CLASSES.into_iter().enumerate() {
            for number in 0..numbers[class] {
                let name = Name { class, number };
                stamped::made(&set.path(name), name.id(), size)?;
            }
        }
        Ok(set)
    }

    /// The next file that is asked for.
    pub fn draw(&self, random: &mut Random) -> Name {
        let (mut share, mut class) = (random.below(SHARES.iter().sum()), 0);
        while share >= SHARES[class] {
            share -= SHARES[class];
            class += 1;
        }
        // Popular files lie anywhere on the disk: steps of a prime reach each once.
        let number = self.laws[class].draw(random) * 7_919 % self.numbers[class];
        Name { class, number }
    }

    /// Pages of each class that are in the page cache. Looking opens every file once.
    pub fn resident(&self) -> Result<[usize; 3], Failure> {
        let mut pages = [0; 3];
        for (class, size) in CLASSES.into_iter().enumerate() {
            for number in 0..self.numbers[class] {
                let path = self.path(Name { class, number });
                let file = File::open(&path)
                    .map_err(|error| Failure::io(&path.display().to_string(), &error))?;
                pages[class] += stamped::resident(&file, size)?;
            }
        }
        Ok(pages)
    }

    /// Where it is.
    pub fn path(&self, name: Name) -> PathBuf {
        self.scratch
            .path(&format!("{}-{:06}", name.class, name.number))
    }
}

impl Name {
    /// What its pages are stamped with.
    pub fn id(self) -> u64 {
        (self.class * 1_000_000 + self.number) as u64
    }

    /// Its size in bytes.
    pub fn size(self) -> usize {
        CLASSES[self.class]
    }
}
