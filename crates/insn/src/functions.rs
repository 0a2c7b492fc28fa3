//! Functions get small numbers in the order in which they are first translated, so that their counters lie together.

use crate::symbols::Symbols;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec::Vec;
use core::ops::Range;

/// Code in the kernel's half that no symbol covers, and that is not where the kernel puts what it makes.
pub const UNKNOWN: u32 = 0;
/// What does not fit into the counters.
pub const OTHERS: u32 = 1;

/// Where modules and generated code are (MODULES_VADDR to MODULES_END of pgtable_64_types.h; the lower of the two places
/// where they begin, which is that of kernels without CONFIG_RANDOMIZE_BASE).
const MADE: Range<u64> = 0xffff_ffff_a000_0000..0xffff_ffff_ff00_0000;
/// Programs of BPF are packed in units of so many bytes (BPF_PROG_CHUNK_SIZE): no unit has code of two of them.
const UNIT: u64 = 64;
/// Takes a module away: from then on others may come to lie where its functions were.
const FREES_MODULES: &[u8] = b"free_module";

/// What a number stands for.
#[derive(Clone, Copy)]
enum Numbered {
    Nothing,
    Symbol(u32),
    /// A unit of generated code, by its address, in hexadecimal digits.
    Unit(&'static [u8]),
}

/// Numbered functions of the kernel.
pub struct Functions {
    symbols: Symbols<'static>,
    /// By number; the first two have nothing.
    numbered: Vec<Numbered>,
    /// Symbol → number; 0 where it has none yet.
    numbers: Vec<u32>,
    /// Address of a unit of generated code → number.
    units: BTreeMap<u64, u32>,
    most: usize,
    last: Found,
    /// A module that has symbols may be gone.
    modules_may_be_others: bool,
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
            modules_may_be_others: false,
            symbols,
            numbered: alloc::vec![Numbered::Nothing; 2],
            numbers,
            units: BTreeMap::new(),
            most,
            last,
        }
    }

    /// The function that holds `address`. Asked for whenever code is translated, that is also when other code has
    /// come to lie there; where that can be since a module was freed, modules' symbols tell nothing any more.
    pub fn find(&mut self, address: u64) -> Found {
        if address < self.last.start || address >= self.last.end {
            self.last = match self.symbol(address) {
                Some((index, end)) => self.numbered(index, end),
                None => Found {
                    number: self.unit(address),
                    start: address,
                    end: address + 1,
                    whole: false,
                },
            };
        }
        self.last
    }

    fn symbol(&mut self, address: u64) -> Option<(u32, u64)> {
        let (index, end) = self.symbols.find(address)?;
        let symbol = self.symbols.get(index);
        let is_image = symbol.module.is_empty();
        self.modules_may_be_others |= is_image && frees_modules(symbol.name);
        (is_image || !self.modules_may_be_others).then_some((index, end))
    }

    /// The number of the unit of generated code that holds `address`. Without symbols nothing is told apart.
    fn unit(&mut self, address: u64) -> u32 {
        if self.symbols.is_empty() || !MADE.contains(&address) {
            return UNKNOWN;
        }
        let unit = address & !(UNIT - 1);
        if let Some(&known) = self.units.get(&unit) {
            return known;
        }
        let number = self.next(Numbered::Unit(format!("{unit:x}").leak().as_bytes()));
        self.units.insert(unit, number);
        number
    }

    fn next(&mut self, what: Numbered) -> u32 {
        if self.numbered.len() >= self.most {
            return OTHERS;
        }
        self.numbered.push(what);
        self.numbered.len() as u32 - 1
    }

    fn numbered(&mut self, index: u32, end: u64) -> Found {
        let symbol = *self.symbols.get(index);
        let number = match self.numbers[symbol.whole as usize] {
            0 => self.next(Numbered::Symbol(symbol.whole)),
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

    /// Name and module; of generated code the address of its unit stands in the module's place.
    pub fn name(&self, number: u32) -> (&'static [u8], &'static [u8]) {
        match self.numbered[number as usize] {
            Numbered::Symbol(index) => {
                let symbol = self.symbols.get(index);
                (symbol.name, symbol.module)
            }
            Numbered::Unit(address) => (b"[generated]", address),
            Numbered::Nothing if number == UNKNOWN => (b"[unknown]", b""),
            Numbered::Nothing => (b"[others]", b""),
        }
    }
}

/// Whether it is `FREES_MODULES`, or what a compiler made of it (`free_module.constprop.0`).
fn frees_modules(name: &[u8]) -> bool {
    let rest = name.strip_prefix(FREES_MODULES);
    rest.is_some_and(|rest| rest.first().is_none_or(|&next| next == b'.'))
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
    fn generated_code_is_told_by_the_unit_that_holds_it() {
        let mut functions = Functions::new(Symbols::read(TABLE), 100);
        let number = |functions: &mut Functions, address| functions.find(address).number;
        let first = number(&mut functions, 0xffff_ffff_c020_1050);
        assert_eq!(number(&mut functions, 0xffff_ffff_c020_107f), first);
        let second = number(&mut functions, 0xffff_ffff_c020_1080);
        assert_eq!(
            [first, second].map(|number| functions.name(number)),
            [&b"ffffffffc0201040"[..], b"ffffffffc0201080"].map(|unit| (&b"[generated]"[..], unit))
        );
        assert!(!functions.find(0xffff_ffff_c020_1040).whole);
        for elsewhere in [0xffff_ffff_9000_0000, 0xffff_ffff_ff60_0000] {
            assert_eq!(number(&mut functions, elsewhere), UNKNOWN);
        }
        let mut nameless = Functions::new(Symbols::read(b""), 100);
        assert_eq!(number(&mut nameless, 0xffff_ffff_c020_1050), UNKNOWN);
    }

    #[test]
    fn where_a_module_was_freed_others_may_lie() {
        let table = b"ffffffff81000000 T a\nffffffff81000100 t free_module.part.0\nffffffff81000200 t free_module_elf\n\
            ffffffffc0000000 t read\t[ext4]\n\
            ffffffffc0000100 t write\t[ext4]\nffffffffc0000200 t scan\t[ext4]\n";
        let mut functions = Functions::new(Symbols::read(table), 100);
        let name = |functions: &mut Functions, address| {
            let number = functions.find(address).number;
            functions.name(number)
        };
        let read = functions.find(0xffff_ffff_c000_0000).number;
        assert_eq!(name(&mut functions, 0xffff_ffff_c000_0104).0, b"write");
        assert_eq!(
            name(&mut functions, 0xffff_ffff_8100_0204).0,
            b"free_module_elf"
        );
        assert_eq!(name(&mut functions, 0xffff_ffff_c000_0204).0, b"scan");
        assert_eq!(
            name(&mut functions, 0xffff_ffff_8100_0104).0,
            b"free_module.part.0"
        );
        for (address, unit) in [
            (0xffff_ffff_c000_0000_u64, &b"ffffffffc0000000"[..]),
            (0xffff_ffff_c000_0110, b"ffffffffc0000100"),
            (0xffff_ffff_c000_0250, b"ffffffffc0000240"),
        ] {
            assert_eq!(name(&mut functions, address), (&b"[generated]"[..], unit));
        }
        assert_eq!(name(&mut functions, 0xffff_ffff_8100_0000).0, b"a");
        assert_eq!(
            functions.name(read),
            (&b"read"[..], &b"ext4"[..]),
            "what ran before"
        );
    }

    #[test]
    fn what_does_not_fit_is_put_together() {
        let mut functions = Functions::new(Symbols::read(TABLE), 3);
        assert_eq!(functions.find(0xffff_ffff_8100_0000).number, 2);
        assert_eq!(functions.find(0xffff_ffff_8100_0100).number, OTHERS);
    }
}
