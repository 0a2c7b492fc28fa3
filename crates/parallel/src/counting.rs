//! Counting by function, where that is asked for: what is translated, executed and waited for goes to its row.

use crate::c_library::{give_up, read_file};
use crate::code::{Code, Row};
use crate::marks::{REGION_BEGIN, REGION_END, RUN_BEGIN, RUN_END};
use crate::tally::{Block, Cell, Counted, Place, Tally};
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// What counts by function.
pub struct Counting {
    code: Code,
    /// The counts.
    pub tally: Tally,
    cpus: usize,
    regions: u64,
    began: i64,
    time: i64,
}

impl Counting {
    /// With the symbols in this file; None where none is asked for. Ends QEMU where it cannot be read.
    pub fn asked(symbols: &str, cpus: usize) -> Option<Box<Self>> {
        if symbols.is_empty() {
            return None;
        }
        let Some(text) = read_file(symbols) else {
            give_up(1, &format!("{symbols} cannot be read"));
        };
        Some(Box::new(Self {
            code: Code::new(text.leak()),
            tally: Tally::new(cpus),
            cpus,
            regions: 0,
            began: 0,
            time: 0,
        }))
    }

    /// A block is being translated.
    pub fn translated(
        &mut self,
        address: u64,
        memory: Option<&[u8; 4096]>,
        length: usize,
    ) -> Block {
        self.code.block(&mut self.tally, address, memory, length)
    }

    /// A program, or the agent, has come to a mark at this time; all idle time is told.
    pub fn mark(&mut self, mark: u32, now: i64) {
        match mark {
            RUN_BEGIN => self.start(now),
            REGION_BEGIN if self.regions == 0 => self.start(now),
            REGION_BEGIN => {
                self.began = now;
                self.tally.begin();
            }
            REGION_END => {
                self.regions += 1;
                self.end(now);
            }
            RUN_END if self.regions == 0 => self.end(now),
            _ => {}
        }
    }

    fn start(&mut self, now: i64) {
        (self.regions, self.began, self.time) = (0, now, 0);
        self.tally.reset();
    }

    fn end(&mut self, now: i64) {
        self.time += now - self.began;
        self.tally.end();
    }

    /// As JSON: what was counted in the program's regions, or from its start to its end where it marked none.
    pub fn told(&mut self) -> String {
        self.regions = 0;
        let counted = self.tally.region();
        format!(
            "{{\"time\": {}, \"functions\": [{}], \"pages\": [{}], \"waits\": [{}], \"idle\": [{}]}}",
            self.time,
            self.functions(counted),
            self.pages(counted),
            self.waits(counted),
            self.idle(counted),
        )
    }

    fn functions(&self, counted: &Counted) -> String {
        self.rows(counted, |row| match row {
            Row::Function(_) => Some(self.name(row)),
            _ => None,
        })
    }

    fn pages(&self, counted: &Counted) -> String {
        self.rows(counted, |row| match row {
            Row::Page(page) => Some(format!("{}, {}", page.address, page.checksum)),
            _ => None,
        })
    }

    /// Rows in which something was counted: what `named` says, then each CPU's counts.
    fn rows(&self, counted: &Counted, named: impl Fn(Row) -> Option<String>) -> String {
        let cells = counted.cells.chunks(self.cpus);
        let rows = self
            .code
            .rows
            .iter()
            .zip(cells)
            .filter_map(|(&row, cells)| {
                let is_there = cells.iter().any(|cell| *cell != Cell::default());
                let name = named(row).filter(|_| is_there)?;
                Some(format!("[{name}, [{}]]", list(cells.iter().map(cell))))
            });
        list(rows)
    }

    fn waits(&self, counted: &Counted) -> String {
        list(
            counted
                .waits
                .iter()
                .filter(|(_, &(_, pauses))| pauses > 0)
                .map(|(&place, (instructions, pauses))| {
                    format!("[{}, {instructions}, {pauses}]", self.place(place))
                }),
        )
    }

    fn idle(&self, counted: &Counted) -> String {
        let told = counted.idle.iter().filter(|(_, &time)| time > 0);
        list(told.map(|(&(place, cpu), time)| format!("[{}, {cpu}, {time}]", self.place(place))))
    }

    fn place(&self, (row, caller): Place) -> String {
        let [row, caller] = [row, caller].map(|row| self.name(self.code.rows[row as usize]));
        format!("{row}, {caller}")
    }

    /// Symbol and module: a page of a program has none.
    fn name(&self, row: Row) -> String {
        let (symbol, module) = match row {
            Row::Function(place) => {
                let symbol = self.code.symbols.get(place);
                (symbol.name, symbol.module)
            }
            Row::Page(_) => (&b"[program]"[..], &b""[..]),
            Row::Nothing => (&b""[..], &b""[..]),
        };
        format!("\"{}\", \"{}\"", text(symbol), text(module))
    }
}

fn cell(cell: &Cell) -> String {
    let Cell {
        instructions,
        entered,
        waited,
        pauses,
        lines,
    } = cell;
    format!("[{instructions}, {entered}, {waited}, {pauses}, {lines}]")
}

fn list(items: impl Iterator<Item = String>) -> String {
    items.collect::<Vec<_>>().join(", ")
}

/// A symbol's name has no character that JSON would escape; what has one is no symbol's.
fn text(name: &[u8]) -> String {
    let plain = |&byte: &u8| match byte {
        b'"' | b'\\' => '?',
        b' '..=b'~' => byte as char,
        _ => '?',
    };
    name.iter().map(plain).collect()
}
