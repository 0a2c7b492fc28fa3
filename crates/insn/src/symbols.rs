//! The kernel's symbols, as `nm` and /proc/kallsyms print them: address, type, name, and `[module]`.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// The lowest kernel address.
pub const KERNEL: u64 = 1 << 63;
/// A symbol that no other of its section follows is given at most this many bytes.
const LONGEST: u64 = 1 << 16;
const PAGE: u64 = 1 << 12;

/// The end of a name that is looked at for `.cold` or `.cold.12`.
const DOTS: usize = 8;

/// One function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol<'a> {
    /// Where it starts.
    pub address: u64,
    /// Its name; that of its parent where it is the parent's `.cold` part.
    pub name: &'a [u8],
    /// The module it belongs to; empty for the kernel image.
    pub module: &'a [u8],
    /// Index of the symbol that stands for the whole function: its own, or its parent's.
    pub whole: u32,
}

/// All functions, in the order of their addresses.
pub struct Symbols<'a> {
    all: Vec<Symbol<'a>>,
    /// Where the image's sections of code end.
    ends: Vec<u64>,
}

impl<'a> Symbols<'a> {
    /// Reads a table. Lines that name no function in the kernel's half of the address space are left out.
    pub fn read(text: &'a [u8]) -> Self {
        let mut all: Vec<(bool, Symbol<'a>)> = text
            .split(|&byte| byte == b'\n')
            .filter_map(function)
            .collect();
        all.sort_by(|(local_a, a), (local_b, b)| {
            a.address
                .cmp(&b.address)
                .then_with(|| preference(*local_a, a).cmp(&preference(*local_b, b)))
        });
        all.dedup_by_key(|(_, symbol)| symbol.address);
        let mut symbols = Self {
            all: all.into_iter().map(|(_, symbol)| symbol).collect(),
            ends: section_ends(text),
        };
        symbols.join_cold_parts();
        symbols
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The symbol with this index.
    pub fn get(&self, index: u32) -> &Symbol<'a> {
        &self.all[index as usize]
    }

    /// The index of the symbol that holds `address`, and where that symbol ends.
    pub fn find(&self, address: u64) -> Option<(u32, u64)> {
        let index = self
            .all
            .partition_point(|symbol| symbol.address <= address)
            .checked_sub(1)?;
        let end = self.end(index);
        (address < end).then_some((index as u32, end))
    }

    /// Symbols have no sizes here: one ends where the next one starts, or where its section or its module ends.
    fn end(&self, index: usize) -> u64 {
        let symbol = &self.all[index];
        let next = self.all.get(index + 1);
        let start = next.map_or(u64::MAX, |next| next.address);
        let is_last = next.is_none_or(|next| next.module != symbol.module);
        match (symbol.module.is_empty(), is_last) {
            (true, false) => start.min(self.section_end(symbol.address)),
            (true, true) => start
                .min(self.section_end(symbol.address))
                .min(symbol.address.saturating_add(LONGEST)),
            (false, false) => start.min(symbol.address.saturating_add(LONGEST)),
            (false, true) => start.min(module_end(symbol.address)),
        }
    }

    fn section_end(&self, address: u64) -> u64 {
        let after = self.ends.partition_point(|&end| end <= address);
        self.ends.get(after).copied().unwrap_or(u64::MAX)
    }

    /// A compiler puts what it thinks unlikely into `name.cold`, far away: it is the same function. Where several
    /// functions have that name, nobody knows whose part it is.
    fn join_cold_parts(&mut self) {
        let mut parents: BTreeMap<(&[u8], &[u8]), Parent> = BTreeMap::new();
        for symbol in &self.all {
            if let Some(parent) = parent_of_cold(symbol.name) {
                parents.insert((parent, symbol.module), Parent::Missing);
            }
        }
        for (index, symbol) in self.all.iter_mut().enumerate() {
            symbol.whole = index as u32;
            if let Some(parent) = parents.get_mut(&(symbol.name, symbol.module)) {
                *parent = match parent {
                    Parent::Missing => Parent::One(index as u32),
                    _ => Parent::Several,
                };
            }
        }
        for symbol in &mut self.all {
            let parent = parent_of_cold(symbol.name);
            let found = parent.and_then(|name| Some((name, parents.get(&(name, symbol.module))?)));
            if let Some((name, Parent::One(whole))) = found {
                (symbol.whole, symbol.name) = (*whole, name);
            }
        }
    }
}

enum Parent {
    Missing,
    One(u32),
    Several,
}

fn parent_of_cold(name: &[u8]) -> Option<&[u8]> {
    if !name.iter().rev().take(DOTS).any(|&byte| byte == b'.') {
        return None;
    }
    let parent = name.strip_suffix(b".cold").or_else(|| {
        let dot = name.iter().rposition(|&byte| byte == b'.')?;
        let number = &name[dot + 1..];
        (!number.is_empty() && number.iter().all(u8::is_ascii_digit))
            .then(|| name[..dot].strip_suffix(b".cold"))?
    })?;
    (!parent.is_empty()).then_some(parent)
}

/// Of several names for one address the least private one is taken: few underscores, global, short, first by letter.
fn preference<'a>(local: bool, symbol: &Symbol<'a>) -> (usize, bool, usize, &'a [u8]) {
    let underscores = symbol.name.iter().take_while(|&&byte| byte == b'_').count();
    (underscores, local, symbol.name.len(), symbol.name)
}

/// What vmlinux.lds.h calls the ends of its sections (`__softirqentry_text_end`, `_stext`): they have the address of a
/// function that has a name of its own, or of padding.
fn is_section_marker(name: &[u8]) -> bool {
    let of_section = |name: &[u8]| {
        let end = name.strip_suffix(b"text_start");
        name.starts_with(b"__") && end.or_else(|| name.strip_suffix(b"text_end")).is_some()
    };
    matches!(
        name,
        b"_text" | b"_stext" | b"_etext" | b"_sinittext" | b"_einittext"
    ) || of_section(name)
}

/// The kernel lays a page that is never mapped behind each module, and behind each piece of code that it makes (a
/// trampoline of ftrace, a program of BPF): what lies beyond the page after the last symbol's own is not the module's.
fn module_end(address: u64) -> u64 {
    (address & !(PAGE - 1)).saturating_add(2 * PAGE)
}

/// Where the sections of code end that the image has: behind `_etext` there are data, or nothing.
fn section_ends(text: &[u8]) -> Vec<u64> {
    let mut ends: Vec<u64> = text
        .split(|&byte| byte == b'\n')
        .filter(|line| line.ends_with(b" _etext") || line.ends_with(b" _einittext"))
        .filter_map(address)
        .filter(|&end| end >= KERNEL)
        .collect();
    ends.sort_unstable();
    ends
}

fn address(line: &[u8]) -> Option<u64> {
    let digits = line.split(|byte| byte.is_ascii_whitespace()).next()?;
    u64::from_str_radix(core::str::from_utf8(digits).ok()?, 16).ok()
}

fn function(line: &[u8]) -> Option<(bool, Symbol<'_>)> {
    let mut fields = line
        .split(|byte| byte.is_ascii_whitespace())
        .filter(|field| !field.is_empty());
    let address = u64::from_str_radix(core::str::from_utf8(fields.next()?).ok()?, 16).ok()?;
    let kind = fields.next()?;
    let name = fields.next()?;
    let module = fields
        .next()
        .and_then(|field| field.strip_prefix(b"[")?.strip_suffix(b"]"))
        .unwrap_or_default();
    let is_code = matches!(kind, b"t" | b"T" | b"w" | b"W") && !is_section_marker(name);
    (address >= KERNEL && is_code).then_some((
        kind[0].is_ascii_lowercase(),
        Symbol {
            address,
            name,
            module,
            whole: 0,
        },
    ))
}

#[cfg(test)]
mod tests;
