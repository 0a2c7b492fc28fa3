//! What the plugin writes: one JSON object a line, so that what was written stays readable however QEMU ends.
//!
//! The first line says who wrote it, then comes one line a region, at last `{"end": true}`. The Python side reads
//! it in `ktrial.machines.exact.plugin`; docs/architecture/plugin.md describes it.

use crate::functions::Functions;
use crate::layout::{repeat, RepeatCounter, Used, ENTERED, PAGES};
use crate::pages::Pages;
use crate::region::Closed;
use crate::repeats::Repeats;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Version of the format.
pub const FORMAT: u32 = 1;

/// The first line.
pub fn header(api: i32, symbols: usize, inline: bool) -> String {
    format!("{{\"insn\":{FORMAT},\"api\":{api},\"symbols\":{symbols},\"inline\":{inline}}}\n")
}

/// The last line.
pub fn end() -> String {
    "{\"end\":true}\n".into()
}

/// What the names behind the counters are.
pub struct Names<'a> {
    /// Of functions.
    pub functions: &'a Functions,
    /// Of programs' pages.
    pub pages: &'a Pages,
    /// Of repeated string instructions.
    pub repeats: &'a Repeats,
}

#[derive(Clone, Copy, Default)]
struct Strings {
    done: u64,
    passes: u64,
    bytes: u64,
}

/// One region's line.
pub fn region(closed: &Closed, used: Used, names: &Names<'_>, vector: bool) -> String {
    let strings = strings_by_owner(closed, used, names.repeats);
    let all = strings.iter().fold(Strings::default(), |sum, (_, one)| add(sum, *one));
    let instructions = used.total(&closed.counters);
    let mut line = format!(
        "{{\"whole\":{},\"instructions\":{instructions},\"marks\":{},\"strings\":{},\"passes\":{},\"bytes\":{}",
        closed.whole, closed.marks, all.done, all.passes, all.bytes
    );
    line.push_str(",\"functions\":[");
    let rows = (0..used.functions).filter_map(|number| function_row(closed, number, &strings, names.functions));
    join(&mut line, rows);
    line.push_str("],\"pages\":[");
    join(&mut line, (0..used.pages).filter_map(|page| page_row(closed, page, &strings, names.pages)));
    line.push_str("],\"operations\":");
    operations(&mut line, &closed.operations, vector);
    line.push_str("}\n");
    line
}

fn strings_by_owner(closed: &Closed, used: Used, repeats: &Repeats) -> Vec<(u32, Strings)> {
    let mut found: Vec<(u32, Strings)> = Vec::new();
    for number in 0..used.repeats {
        let count = |counter| closed.counters[repeat(number, counter)];
        let site = repeats.get(number);
        let bytes = count(RepeatCounter::Accesses) / u64::from(site.repeat.accesses) * u64::from(site.repeat.width);
        let one = Strings { done: count(RepeatCounter::Done), passes: count(RepeatCounter::Passes), bytes };
        match found.iter_mut().find(|(owner, _)| *owner == site.owner) {
            Some((_, sum)) => *sum = add(*sum, one),
            None => found.push((site.owner, one)),
        }
    }
    found
}

fn add(a: Strings, b: Strings) -> Strings {
    Strings { done: a.done + b.done, passes: a.passes + b.passes, bytes: a.bytes + b.bytes }
}

fn of(strings: &[(u32, Strings)], owner: usize) -> Strings {
    strings.iter().find(|(other, _)| *other as usize == owner).map_or(Strings::default(), |(_, one)| *one)
}

/// `[name, module, instructions, entered, strings, passes, bytes]`
fn function_row(closed: &Closed, number: usize, strings: &[(u32, Strings)], names: &Functions) -> Option<String> {
    let (own, entered) = (closed.counters[number], closed.counters[ENTERED + number]);
    let Strings { done, passes, bytes } = of(strings, number);
    if own == 0 && entered == 0 && passes == 0 {
        return None;
    }
    let (name, module) = names.name(number as u32);
    let (name, module) = (quoted(name), quoted(module));
    Some(format!("[{name},{module},{own},{entered},{done},{passes},{bytes}]"))
}

/// `[address, checksum, instructions, strings, passes, bytes]`
fn page_row(closed: &Closed, number: usize, strings: &[(u32, Strings)], names: &Pages) -> Option<String> {
    let own = closed.counters[PAGES + number];
    let Strings { done, passes, bytes } = of(strings, PAGES + number);
    if own == 0 && passes == 0 {
        return None;
    }
    let page = names.get(number);
    Some(format!("[{},{},{own},{done},{passes},{bytes}]", page.address, page.checksum))
}

fn operations(line: &mut String, all: &[u64], vector: bool) {
    let mut sorted = all.to_vec();
    sorted.sort_unstable();
    let sum: u64 = all.iter().sum();
    let (least, most) = (sorted.first().copied().unwrap_or(0), sorted.last().copied().unwrap_or(0));
    // The lower of the two middle ones and the upper: their mean is the median, and stays whole here.
    let low = sorted.get(all.len().saturating_sub(1) / 2).copied().unwrap_or(0);
    let high = sorted.get(all.len() / 2).copied().unwrap_or(0);
    line.push_str(&format!(
        "{{\"count\":{},\"sum\":{sum},\"minimum\":{least},\"maximum\":{most},\"middle\":[{low},{high}]",
        all.len()
    ));
    if vector {
        line.push_str(",\"vector\":[");
        join(line, all.iter().map(|one| format!("{one}")));
        line.push(']');
    }
    line.push('}');
}

fn join(line: &mut String, items: impl Iterator<Item = String>) {
    for (index, item) in items.enumerate() {
        if index > 0 {
            line.push(',');
        }
        line.push_str(&item);
    }
}

/// A JSON string. Symbols are plain ASCII; anything else becomes `?`.
fn quoted(text: &[u8]) -> String {
    let mut quoted = String::from("\"");
    for &byte in text {
        match byte {
            b'"' | b'\\' => quoted.extend(['\\', byte as char]),
            0x20..=0x7e => quoted.push(byte as char),
            _ => quoted.push('?'),
        }
    }
    quoted.push('"');
    quoted
}


#[cfg(test)]
#[path = "output_tests.rs"]
mod tests;
