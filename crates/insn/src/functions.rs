//! Functions get small numbers in the order in which they are first translated, so that their counters lie together.

use crate::symbols::Symbols;
use alloc::vec::Vec;

/// Code in the kernel's half that no symbol covers: before the kernel's own code, and generated code.
pub const UNKNOWN: u32 = 0;
/// What does not fit into the counters.
pub const OTHERS: u32 = 1;

/// Numbered functions of the kernel.
pub struct Functions {
    symbols: Symbols<'static>,
    /// Number → symbol; the first two have none.
    numbered: Vec<Option<u32>>,
    /// Symbol → number; 0 where it has none yet.
    numbers: Vec<u32>,
    most: usize,
    last: Found,
}

/// The function that holds an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its number.
    pub number: u32,
    /// Where the symbol starts that holds the address.
    pub start: u64,
    /// Where it ends.
    pub end: u64,
    /// The symbol is the function's beginning, not its `.cold` part.
    pub whole: bool,
}

impl Functions {
    /// At most `most` numbers are given.
    pub fn new(symbols: Symbols<'static>, most: usize) -> Self {
        let numbers = alloc::vec![0; symbols.len()];
        let last = Found {
            number: UNKNOWN,
            start: 0,
            end: 0,
            whole: false,
        };
        Self {
            symbols,
            numbered: alloc::vec![None, None],
            numbers,
            most,
            last,
        }
    }

    /// The function that holds `address`.
    pub fn find(&mut self, address: u64) -> Found {
        if address < self.last.start || address >= self.last.end {
            self.last = match self.symbols.find(address) {
                Some((index, end)) => self.numbered(index, end),
                None => Found {
                    number: UNKNOWN,
                    start: address,
                    end: address + 1,
                    whole: false,
                },
            };
        }
        self.last
    }

    fn numbered(&mut self, index: u32, end: u64) -> Found {
        let symbol = *self.symbols.get(index);
        let known = self.numbers[symbol.whole as usize];
        let number = match known {
            0 if self.numbered.len() >= self.most => OTHERS,
            0 => {
                self.numbered.push(Some(symbol.whole));
                self.numbered.len() as u32 - 1
            }
            known => known,
        };
        self.numbers[symbol.whole as usize] = number;
        Found {
            number,
            start: symbol.address,
            end,
            whole: symbol.whole == index,
        }
    }

    /// How many numbers are given.
    pub fn count(&self) -> usize {
        self.numbered.len()
    }

    /// How many symbols there are.
    pub fn symbols(&self) -> usize {
        self.symbols.len()
    }

    /// Name and module.
    pub fn name(&self, number: u32) -> (&'static [u8], &'static [u8]) {
        match self.numbered[number as usize] {
            Some(index) => {
                let symbol = self.symbols.get(index);
                (symbol.name, symbol.module)
            }
            None if number == UNKNOWN => (b"[unknown]", b""),
            None => (b"[others]", b""),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[u8] = b"ffffffff81000000 T a\nffffffff81000100 T b\nffffffff81000200 t a.cold\n";

    #[test]
    fn numbers_follow_first_use_and_join_cold_parts() {
        let mut functions = Functions::new(Symbols::read(TABLE), 100);
        let b = functions.find(0xffff_ffff_8100_0110);
        let a = functions.find(0xffff_ffff_8100_0000);
        let cold = functions.find(0xffff_ffff_8100_0204);
        assert_eq!((b.number, a.number, cold.number), (2, 3, 3));
        assert_eq!((a.whole, cold.whole), (true, false));
        assert_eq!(functions.name(a.number), (&b"a"[..], &b""[..]));
        assert_eq!(functions.find(0xffff_8000_0000_0000).number, UNKNOWN);
    }

    #[test]
    fn what_does_not_fit_is_put_together() {
        let mut functions = Functions::new(Symbols::read(TABLE), 3);
        assert_eq!(functions.find(0xffff_ffff_8100_0000).number, 2);
        assert_eq!(functions.find(0xffff_ffff_8100_0100).number, OTHERS);
    }
}
