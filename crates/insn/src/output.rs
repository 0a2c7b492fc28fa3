//! What the plugin writes: one JSON object a line, so that what was written stays readable however QEMU ends.
//!
//! The first line says who wrote it; then each run of a program has a line where it begins, one a region, and one where
//! it ends, which says how it was marked; at last comes `{"end": true}`. The Python side reads
//! it in `ktrial.machines.exact.plugin`; docs/architecture/plugin.md describes it.

use crate::caches::{Caches, Counts};
use crate::calls::Calls;
use crate::functions::Functions;
use crate::layout::{repeat, RepeatCounter, Used, ENTERED, PAGES};
use crate::machine_model::{self, MachineModel};
use crate::pages::Pages;
use crate::region::{Closed, Marking};
use crate::repeats::Repeats;
use crate::tree::PROGRAM;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

/// Version of the format.
pub const FORMAT: u32 = 2;

/// The first line.
pub fn header(api: i32, symbols: usize, inline: bool) -> String {
    format!("{{\"insn\":{FORMAT},\"api\":{api},\"symbols\":{symbols},\"inline\":{inline}}}\n")
}

/// The last line.
pub fn end() -> String {
    "{\"end\":true}\n".into()
}

/// Where a run begins.
pub fn next_run() -> String {
    "{\"run\":\"begin\"}\n".into()
}

/// Where a run ends: how the program marked its regions.
pub fn run_end(marking: &Marking) -> String {
    let Marking {
        regions,
        nested,
        loose_operations,
        loose_ends,
        unclosed,
        dropped,
        foreign,
    } = marking;
    format!(
        "{{\"run\":\"end\",\"regions\":{regions},\"nested\":{nested},\"loose_operations\":{loose_operations},\
         \"loose_ends\":{loose_ends},\"unclosed\":{unclosed},\"dropped\":{dropped},\"foreign\":{foreign}}}\n"
    )
}

/// What the names behind the counters are.
pub struct Names<'a> {
    /// Of functions.
    pub functions: &'a Functions,
    /// Of programs' pages.
    pub pages: &'a Pages,
    /// Of repeated string instructions.
    pub repeats: &'a Repeats,
    /// Who called whom, where that was asked for.
    pub calls: Option<&'a Calls>,
    /// What the caches saw, where that was asked for.
    pub caches: Option<&'a Caches>,
    /// What was modelled, where that was asked for.
    pub model: Option<&'a MachineModel>,
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
    let all = strings
        .iter()
        .fold(Strings::default(), |sum, (_, one)| add(sum, *one));
    let instructions = used.total(&closed.counters);
    let mut line = format!(
        "{{\"whole\":{},\"instructions\":{instructions},\"marks\":{},\"strings\":{},\"passes\":{},\"bytes\":{}",
        closed.whole, closed.marks, all.done, all.passes, all.bytes
    );
    if let Some(model) = names.model {
        let cycles = model.costs().base(instructions, all.bytes) + closed.modelled;
        line.push_str(&format!(",\"cycles\":{cycles}"));
    }
    line.push_str(",\"functions\":[");
    let rows = rows(closed, used, &strings, names);
    join(
        &mut line,
        rows.iter()
            .map(|&number| function_row(closed, number, &strings, names)),
    );
    line.push_str("],\"pages\":[");
    join(
        &mut line,
        (0..used.pages).filter_map(|page| page_row(closed, page, &strings, names)),
    );
    line.push_str("],\"operations\":");
    operations(&mut line, closed, names.model, vector);
    if let Some(calls) = names.calls {
        tree(&mut line, calls, &rows);
    }
    line.push_str("}\n");
    line
}

fn strings_by_owner(closed: &Closed, used: Used, repeats: &Repeats) -> Vec<(u32, Strings)> {
    let mut found: Vec<(u32, Strings)> = Vec::new();
    for number in 0..used.repeats {
        let count = |counter| closed.counters[repeat(number, counter)];
        let site = repeats.get(number);
        let bytes = repeats.bytes(number, count(RepeatCounter::Accesses));
        let one = Strings {
            done: count(RepeatCounter::Done),
            passes: count(RepeatCounter::Passes),
            bytes,
        };
        match found.iter_mut().find(|(owner, _)| *owner == site.owner) {
            Some((_, sum)) => *sum = add(*sum, one),
            None => found.push((site.owner, one)),
        }
    }
    found
}

fn add(a: Strings, b: Strings) -> Strings {
    Strings {
        done: a.done + b.done,
        passes: a.passes + b.passes,
        bytes: a.bytes + b.bytes,
    }
}

fn of(strings: &[(u32, Strings)], owner: usize) -> Strings {
    strings
        .iter()
        .find(|(other, _)| *other as usize == owner)
        .map_or(Strings::default(), |(_, one)| *one)
}

/// The functions that ran, or stand in the tree, by number.
fn rows(closed: &Closed, used: Used, strings: &[(u32, Strings)], names: &Names<'_>) -> Vec<usize> {
    let mut named = vec![false; used.functions];
    for tree in names.calls.iter().map(|calls| calls.tree()) {
        for place in tree.in_use().into_iter().skip(PROGRAM as usize + 1) {
            named[tree.nodes()[place].function as usize] = true;
        }
    }
    let ran = |number: usize| {
        let counted = closed.counters[number] + closed.counters[ENTERED + number];
        counted + of(strings, number).passes > 0 || named[number]
    };
    (0..used.functions).filter(|&number| ran(number)).collect()
}

/// `[name, module, instructions, entered, strings, passes, bytes]`, and what the caches saw.
fn function_row(
    closed: &Closed,
    number: usize,
    strings: &[(u32, Strings)],
    names: &Names<'_>,
) -> String {
    let (own, entered) = (closed.counters[number], closed.counters[ENTERED + number]);
    let Strings {
        done,
        passes,
        bytes,
    } = of(strings, number);
    let (name, module) = names.functions.name(number as u32);
    let (name, module) = (quoted(name), quoted(module));
    let seen = seen_by_caches(names.caches, number) + &modelled(names.model, number);
    format!("[{name},{module},{own},{entered},{done},{passes},{bytes}{seen}]")
}

/// `"unmatched"`, `"tasks":[[stack, kernel, program]…]`, `"tree":[[parent, row, own, entered]…]`. The tree's first two
/// places are its root and the program, their row is -1; every other place comes after its parent. Places where
/// nothing ran, nor below them, are left out.
fn tree(line: &mut String, calls: &Calls, rows: &[usize]) {
    line.push_str(&format!(",\"unmatched\":{},\"tasks\":[", calls.unmatched()));
    join(
        line,
        calls
            .tasks()
            .map(|(stack, task)| format!("[{stack},{},{}]", task.kernel, task.program)),
    );
    line.push_str("],\"tree\":[");
    let nodes = calls.tree().nodes();
    let places = calls.tree().in_use();
    let place = |&index: &usize| {
        let node = &nodes[index];
        let row = if index <= PROGRAM as usize {
            None
        } else {
            rows.binary_search(&(node.function as usize)).ok()
        };
        let parent = places.binary_search(&(node.parent as usize)).unwrap_or(0);
        format!(
            "[{parent},{},{},{}]",
            row.map_or(-1, |row| row as i64),
            node.own,
            node.entered
        )
    };
    join(line, places.iter().map(place));
    line.push(']');
}

/// `,loads,stores,code misses,data misses,last-level misses`
fn seen_by_caches(caches: Option<&Caches>, owner: usize) -> String {
    caches.map_or(String::new(), |caches| {
        let Counts {
            loads,
            stores,
            code_misses,
            data_misses,
            last_misses,
        } = caches.counts(owner);
        format!(",{loads},{stores},{code_misses},{data_misses},{last_misses}")
    })
}

/// `,cycles beside its instructions', code misses, data misses, second-level misses, last-level misses, translation
/// misses, walks, mispredictions`
fn modelled(model: Option<&MachineModel>, owner: usize) -> String {
    model.map_or(String::new(), |model| {
        let machine_model::Counts {
            cycles,
            code_misses,
            data_misses,
            second_misses,
            last_misses,
            translation_misses,
            walks,
            mispredictions,
        } = model.counts(owner);
        format!(
            ",{cycles},{code_misses},{data_misses},{second_misses},{last_misses},{translation_misses},{walks},\
             {mispredictions}"
        )
    })
}

/// `[address, checksum, instructions, strings, passes, bytes]`, and what the caches saw.
fn page_row(
    closed: &Closed,
    number: usize,
    strings: &[(u32, Strings)],
    names: &Names<'_>,
) -> Option<String> {
    let own = closed.counters[PAGES + number];
    let Strings {
        done,
        passes,
        bytes,
    } = of(strings, PAGES + number);
    if own == 0 && passes == 0 {
        return None;
    }
    let page = names.pages.get(number);
    let owner = PAGES + number;
    let seen = seen_by_caches(names.caches, owner) + &modelled(names.model, owner);
    Some(format!(
        "[{},{},{own},{done},{passes},{bytes}{seen}]",
        page.address, page.checksum
    ))
}

fn operations(line: &mut String, closed: &Closed, model: Option<&MachineModel>, vector: bool) {
    let (all, bytes) = (&closed.operations, &closed.bytes);
    let sum: u64 = all.iter().sum();
    let (least, most) = (
        all.iter().min().copied().unwrap_or(0),
        all.iter().max().copied().unwrap_or(0),
    );
    let ((low, high), (few, many)) = (middle(all), middle(bytes));
    line.push_str(&format!(
        "{{\"count\":{},\"sum\":{sum},\"minimum\":{least},\"maximum\":{most},\"middle\":[{low},{high}],\"bytes\":[{few},{many}]",
        all.len()
    ));
    let cycles = model.map(|model| each_cycles(closed, model));
    if let Some(each) = &cycles {
        let (low, high) = middle(each);
        line.push_str(&format!(",\"cycles\":[{low},{high}]"));
    }
    if vector {
        let vectors = [
            ("vector", Some(all)),
            ("byte_vector", Some(bytes)),
            ("cycle_vector", cycles.as_ref()),
        ];
        for (name, each) in vectors {
            let Some(each) = each else { continue };
            line.push_str(&format!(",\"{name}\":["));
            numbers(line, each);
            line.push(']');
        }
    }
    line.push('}');
}

/// Thousandths of a cycle, of each operation.
fn each_cycles(closed: &Closed, model: &MachineModel) -> Vec<u64> {
    let counted = closed.operations.iter().zip(&closed.bytes);
    counted
        .zip(&closed.each_modelled)
        .map(|((&instructions, &bytes), modelled)| {
            model.costs().base(instructions, bytes) + modelled
        })
        .collect()
}

/// There may be a million of them.
fn numbers(line: &mut String, all: &[u64]) {
    for (index, &number) in all.iter().enumerate() {
        if index > 0 {
            line.push(',');
        }
        let (mut digits, mut first, mut rest) = ([b'0'; 20], 19, number);
        while rest > 9 {
            digits[first] = b'0' + (rest % 10) as u8;
            (first, rest) = (first - 1, rest / 10);
        }
        digits[first] = b'0' + rest as u8;
        line.extend(digits[first..].iter().map(|&digit| digit as char));
    }
}

/// The lower of the two middle ones and the upper: their mean is the median, and stays whole here.
fn middle(all: &[u64]) -> (u64, u64) {
    if all.is_empty() {
        return (0, 0);
    }
    let mut some = all.to_vec();
    let (below, &mut high, _) = some.select_nth_unstable(all.len() / 2);
    let low = if all.len() % 2 == 1 {
        high
    } else {
        below.iter().max().copied().unwrap_or(high)
    };
    (low, high)
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
mod tests;
