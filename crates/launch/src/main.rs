//! `launch`: runs programs on this machine, one after another, and tells how each ended. ktrial's machine `host` starts
//! it once for a row of runs.
//!
//! Its standard input carries one line, the order (`order.rs`), and stays open: when ktrial ends, for whatever reason,
//! the pipe breaks, and the program under way is killed with all that it started. Its standard output takes one line of
//! JSON a run, a `StepResult`. Between the two readings of the clock around a program it sleeps.

mod child;
mod cpu_time;
mod descendants;
mod order;
mod output;
mod watched;
mod window;

use std::io::{self, BufWriter, Write as _};

use order::Order;
use watched::Watched;

/// Something is wrong with the order, or with this system: no run could be tried.
const UNUSABLE: i32 = 2;

fn main() {
    if let Err(problem) = work() {
        eprintln!("launch: {problem}");
        std::process::exit(UNUSABLE);
    }
}

fn work() -> io::Result<()> {
    descendants::adopt()?;
    let order = Order::read()?;
    let place = child::Place::of(&order)?;
    let mut watched = Watched::default();
    let mut ended = Vec::new();
    for row in &order.rows {
        ended.push(window::run_row(row, &place, order.parent, &mut watched)?);
        if window::is_told_to_stop()? {
            break;
        }
    }
    let mut told = BufWriter::new(io::stdout().lock());
    for result in ended.into_iter().flat_map(window::EndedRow::told) {
        serde_json::to_writer(&mut told, &result)?;
        writeln!(told)?;
    }
    told.flush()
}
