//! The kernel's functions, as /proc/kallsyms lists them without KASLR. The rules are those of crates/insn, whose profiles
//! name the same code the same way.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// The lowest kernel address.
pub const KERNEL: u64 = 1 << 63;
/// Where modules and generated code are (MODULES_VADDR to MODULES_END, of kernels without CONFIG_RANDOMIZE_BASE).
const MADE: core::ops::Range<u64> = 0xffff_ffff_a000_0000..0xffff_ffff_ff00_0000;
/// No function is longer, in a module or at a section's end.
const LONGEST: u64 = 1 << 16;

/// One function, or the part of one that the compiler has put far away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Where it starts.
    pub start: u64,
    /// Where it ends.
    pub end: u64,
    /// The function that it is a part of, by its place among all; its own place where it is whole.
    pub whole: usize,
    /// Its name; that of the whole function.
    pub name: &'static [u8],
    /// The module it belongs to; empty for the kernel image.
    pub module: &'static [u8],
}

/// All of them, by address. Code that none covers has the two last places.
pub struct Symbols(Vec<Symbol>);

impl Symbols {
    /// From the text of kallsyms.
    pub fn read(text: &'static [u8]) -> Self {
        let lines = || text.split(|&byte| byte == b'\n').filter_map(line);
        let mut all: Vec<(char, Symbol)> = lines().filter(|(kind, _)| is_code(*kind)).collect();
        let ends: Vec<u64> = lines()
            .filter(|(_, symbol)| matches!(symbol.name, b"_etext" | b"_einittext"))
            .map(|(_, symbol)| symbol.start)
            .collect();
        all.retain(|(_, symbol)| !is_marker(symbol.name));
        all.sort_by_key(|(kind, symbol)| (symbol.start, rank(*kind, symbol.name)));
        all.dedup_by_key(|(_, symbol)| symbol.start);
        let mut made = Self(all.into_iter().map(|(_, symbol)| symbol).collect());
        made.end_each(&ends);
        made.join_parts();
        made.0.push(nameless(b"[unknown]"));
        made.0.push(nameless(b"[generated]"));
        made
    }

    /// The place of the symbol that holds the address.
    pub fn find(&self, address: u64) -> usize {
        let named = self.0.len() - 2;
        let after = self.0[..named].partition_point(|symbol| symbol.start <= address);
        match after.checked_sub(1) {
            Some(place) if address < self.0[place].end => place,
            _ => named + usize::from(named > 0 && MADE.contains(&address)),
        }
    }

    /// The symbol at this place.
    pub fn get(&self, place: usize) -> &Symbol {
        &self.0[place]
    }

    /// Symbols have no sizes here: one ends where the next starts, but never behind its section.
    fn end_each(&mut self, ends: &[u64]) {
        for place in 0..self.0.len() {
            let next = self.0.get(place + 1).map(|next| (next.start, next.module));
            let symbol = &mut self.0[place];
            symbol.whole = place;
            let section = ends.iter().filter(|&&end| end > symbol.start).min();
            let (start, module) = next.unwrap_or((u64::MAX, b"[none]"));
            let is_inside = symbol.module.is_empty() && module.is_empty();
            let most = match is_inside {
                true => u64::MAX,
                false => symbol.start.saturating_add(LONGEST),
            };
            let section = match symbol.module.is_empty() {
                true => section.copied().unwrap_or(u64::MAX),
                false => u64::MAX,
            };
            symbol.end = start.min(most).min(section);
        }
    }

    /// `name.cold` is a part of the one function `name`.
    fn join_parts(&mut self) {
        let mut places: BTreeMap<(&[u8], &[u8]), Option<usize>> = BTreeMap::new();
        for (place, symbol) in self.0.iter().enumerate() {
            let known = places.entry((symbol.name, symbol.module));
            known.and_modify(|one| *one = None).or_insert(Some(place));
        }
        for symbol in &mut self.0 {
            let whole = cold_part_of(symbol.name)
                .and_then(|name| Some((name, *places.get(&(name, symbol.module))?)));
            if let Some((name, Some(place))) = whole {
                (symbol.name, symbol.whole) = (name, place);
            }
        }
    }
}

fn nameless(name: &'static [u8]) -> Symbol {
    Symbol {
        start: 0,
        end: 0,
        whole: 0,
        name,
        module: b"",
    }
}

fn line(line: &'static [u8]) -> Option<(char, Symbol)> {
    let mut words = line
        .split(|byte| byte.is_ascii_whitespace())
        .filter(|word| !word.is_empty());
    let start = u64::from_str_radix(core::str::from_utf8(words.next()?).ok()?, 16).ok()?;
    let kind = *words.next()?.first()? as char;
    let name = words.next()?;
    let module = words.next().and_then(|word| word.strip_prefix(b"["));
    let module = module
        .and_then(|word| word.strip_suffix(b"]"))
        .unwrap_or_default();
    let symbol = Symbol {
        start,
        module,
        ..nameless(name)
    };
    (start >= KERNEL).then_some((kind, symbol))
}

fn is_code(kind: char) -> bool {
    matches!(kind.to_ascii_lowercase(), 't' | 'w')
}

/// A section's end or beginning has the address of a function that has a name of its own.
fn is_marker(name: &[u8]) -> bool {
    let of_section = name.ends_with(b"text_start") || name.ends_with(b"text_end");
    (name.starts_with(b"__") && of_section)
        || matches!(
            name,
            b"_text" | b"_stext" | b"_etext" | b"_sinittext" | b"_einittext"
        )
}

/// Of several names for one address the least private one comes first.
fn rank(kind: char, name: &'static [u8]) -> (usize, bool, usize, &'static [u8]) {
    let underscores = name.iter().take_while(|&&byte| byte == b'_').count();
    (underscores, kind.is_ascii_lowercase(), name.len(), name)
}

fn cold_part_of(name: &'static [u8]) -> Option<&'static [u8]> {
    let digits = name
        .iter()
        .rev()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let numbered = name[..name.len() - digits]
        .strip_suffix(b".")
        .filter(|_| digits > 0);
    numbered.unwrap_or(name).strip_suffix(b".cold")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[u8] =
        b"ffffffff81000000 T _stext\nffffffff81000000 T __first\nffffffff81000000 t first\n\
        ffffffff81000100 T second\nffffffff81000200 t second.cold.7\nffffffff81000300 T _etext\n\
        ffffffff81000400 D data\nffffffffc0000000 t of_module\t[ext4]\n0000000000000010 T low\n";

    #[test]
    fn code_belongs_to_the_function_that_holds_it() {
        let all = Symbols::read(TABLE);
        let table: [(u64, &[u8], &[u8]); 9] = [
            (0xffff_ffff_8100_0000, b"first", b""),
            (0xffff_ffff_8100_00ff, b"first", b""),
            (0xffff_ffff_8100_0100, b"second", b""),
            (0xffff_ffff_8100_0210, b"second", b""),
            (0xffff_ffff_8100_0300, b"[unknown]", b""),
            (0xffff_ffff_c000_0010, b"of_module", b"ext4"),
            (0xffff_ffff_c001_0000, b"[generated]", b""),
            (0xffff_ffff_80ff_ffff, b"[unknown]", b""),
            (0xffff_ffff_ff60_0000, b"[unknown]", b""),
        ];
        for (address, name, module) in table {
            let found = all.get(all.find(address));
            assert_eq!((found.name, found.module), (name, module), "{address:x}");
        }
    }

    #[test]
    fn a_part_that_lies_apart_is_not_the_functions_beginning() {
        let all = Symbols::read(TABLE);
        let [start, part] =
            [0xffff_ffff_8100_0100, 0xffff_ffff_8100_0200].map(|address| all.find(address));
        assert_ne!(start, part);
        assert_eq!(all.get(part).whole, start);
        assert_eq!(all.get(start).whole, start);
    }

    #[test]
    fn without_symbols_nothing_has_a_name() {
        let all = Symbols::read(b"");
        for address in [KERNEL, 0xffff_ffff_c000_0010] {
            assert_eq!(all.get(all.find(address)).name, b"[unknown]");
        }
    }
}
