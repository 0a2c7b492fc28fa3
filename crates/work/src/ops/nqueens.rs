//! N-Queens: no kernel work at all.

use std::hint::black_box;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread;

use crate::arguments::{Arguments, Workload};
use crate::failure::Failure;
use crate::meter::Meter;
use crate::processes::pin;
use crate::workload::{Domain, Parameter};

pub const WORKLOAD: Workload = Workload {
    name: "nqueens",
    summary: "count the solutions of the N-Queens problem: the null control, without kernel work",
    does: "One operation counts all placements of 8 queens on a board of 8 by 8, by backtracking with bit masks, in \
           registers and stack only. The count must be the known one. A change of the kernel must not move it.",
    system_calls: &[],
    metric: "board",
    also: &[],
    parameters: &[
        Parameter {
            name: "board",
            summary: "rows and columns of the board; the Phoronix Test Suite has 18",
            domain: Domain::Number { default: 8, minimum: 1, maximum: 18 },
        },
        Parameter {
            name: "threads",
            summary: "threads that share the first row's columns; more than one are not held on one CPU",
            domain: Domain::Number { default: 1, minimum: 1, maximum: 1_024 },
        },
    ],
    source: "N-Queens as in the Phoronix Test Suite; counts: OEIS A000170",
    operations: 51,
    passes: 3,
    discarded: 1,
    spreads: true,
    fixed_layout: false,
    run,
};

/// Solutions for boards of 1 to 18 (OEIS A000170).
const KNOWN: [u64; 18] = [
    1, 0, 0, 2, 10, 4, 40, 92, 352, 724, 2_680, 14_200, 73_712, 365_596, 2_279_184, 14_772_512, 95_815_104,
    666_090_624,
];

fn run(arguments: &Arguments, meter: &mut Meter) -> Result<(), Failure> {
    let (board, threads) = (arguments.size("board"), arguments.size("threads"));
    if threads == 1 {
        pin()?;
        return meter.repeat(|| check(board, solutions(black_box(board))));
    }
    meter.repeat(|| check(board, shared_out(board, threads)))
}

fn check(board: usize, count: u64) -> Result<(), Failure> {
    match count == KNOWN[board - 1] {
        true => Ok(()),
        false => Err(Failure::wrong(format!("{count} solutions on a board of {board}"))),
    }
}

fn solutions(board: usize) -> u64 {
    place((1 << board) - 1, 0, 0, 0)
}

/// Each thread takes the next column of the first row that nobody has taken.
fn shared_out(board: usize, threads: usize) -> u64 {
    let (next, count) = (AtomicU32::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| loop {
                let column = next.fetch_add(1, Ordering::Relaxed);
                if column as usize >= board {
                    return;
                }
                let queen = 1 << column;
                let found = place((1 << board) - 1, queen, queen << 1, queen >> 1);
                count.fetch_add(found, Ordering::Relaxed);
            });
        }
    });
    count.into_inner()
}

/// The ways to fill the rows that are left. `columns`, `left` and `right` are the columns of the next row that are
/// attacked straight and along the two diagonals.
fn place(all: u32, columns: u32, left: u32, right: u32) -> u64 {
    if columns == all {
        return 1;
    }
    let mut count = 0;
    let mut free = all & !(columns | left | right);
    while free != 0 {
        let queen = free & free.wrapping_neg();
        free ^= queen;
        count += place(all, columns | queen, (left | queen) << 1, (right | queen) >> 1);
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_boards_have_the_known_numbers_of_solutions() {
        for board in 1..=10 {
            assert_eq!(solutions(board), KNOWN[board - 1], "board {board}");
            for threads in [2, 3, 20] {
                assert_eq!(shared_out(board, threads), KNOWN[board - 1], "board {board}, {threads} threads");
            }
        }
    }
}
