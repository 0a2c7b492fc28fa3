//! Programs are told apart by their code: which page of memory, at which address, with which content.
//!
//! The API shows no process (version 1 shows no register either). Whoever knows the programs' files can find the page
//! among them by its checksum.

use crate::layout::MOST_PAGES;
use alloc::vec::Vec;

/// One page of a program's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// Its address in the program.
    pub address: u64,
    /// CRC-32 (IEEE 802.3, as in zlib) of its 4096 bytes.
    pub checksum: u32,
}

/// Page number 0: those that do not fit, and code outside RAM.
const REST: Page = Page {
    address: 0,
    checksum: 0,
};

/// Numbered pages.
pub struct Pages {
    all: Vec<(Page, usize)>,
    last: usize,
}

impl Default for Pages {
    fn default() -> Self {
        Self {
            all: alloc::vec![(REST, 0)],
            last: 0,
        }
    }
}

impl Pages {
    /// The number of the page at `address`, which QEMU keeps in `memory`.
    pub fn find(&mut self, address: u64, memory: Option<&[u8; 4096]>) -> usize {
        let Some(memory) = memory else { return 0 };
        let (address, host) = (address & !0xfff, memory.as_ptr() as usize);
        let same = |(page, at): &(Page, usize)| page.address == address && *at == host;
        if same(&self.all[self.last]) {
            return self.last;
        }
        let page = Page {
            address,
            checksum: crc32(memory),
        };
        self.last = match self
            .all
            .iter()
            .position(|known| same(known) || known.0 == page)
        {
            Some(number) => number,
            None if self.all.len() >= MOST_PAGES => return 0,
            None => {
                self.all.push((page, host));
                self.all.len() - 1
            }
        };
        self.last
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// The page with this number.
    pub fn get(&self, number: usize) -> Page {
        self.all[number].0
    }
}

fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, bit: u32| (crc >> 1) ^ (0xedb8_8320 & 0u32.wrapping_sub((crc ^ bit) & 1));
    !bytes.iter().fold(!0u32, |crc, &byte| {
        (0..8).fold(crc, |crc, shift| step(crc, u32::from(byte >> shift)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_zlib_s() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn pages_differ_by_address_and_content() {
        let (nops, zeros) = ([0x90u8; 4096], [0u8; 4096]);
        let mut pages = Pages::default();
        let first = pages.find(0x40_1234, Some(&nops));
        assert_eq!(pages.find(0x40_1ff0, Some(&nops)), first);
        assert_ne!(pages.find(0x40_2000, Some(&nops)), first);
        assert_ne!(pages.find(0x40_1000, Some(&zeros)), first);
        assert_eq!(
            pages.get(first),
            Page {
                address: 0x40_1000,
                checksum: crc32(&nops)
            }
        );
        assert_eq!(pages.find(0x40_1000, None), 0);
    }

    #[test]
    fn a_page_that_was_copied_is_still_the_same() {
        let (one, copy) = ([0x90u8; 4096], [0x90u8; 4096]);
        let mut pages = Pages::default();
        assert_eq!(
            pages.find(0x1000, Some(&one)),
            pages.find(0x1000, Some(&copy))
        );
    }
}
