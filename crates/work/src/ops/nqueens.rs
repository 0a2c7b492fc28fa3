//! N-Queens: no kernel work at all.

use std::hint::black_box;

use crate::arguments::Arguments;
use crate::failure::Failure;
use crate::meter::Meter;
use crate::workload::{Domain, Parameter, Workload};

pub const WORKLOAD: Workload = Workload {
    name: "nqueens",
    summary: "count the solutions of the N-Queens problem: the null control, without kernel work",
    does: "One operation counts all placements of 8 queens on a board of 8 by 8, by backtracking with bit masks, in \
           registers and stack only. The count must be the known one. A change of the kernel must not move it.",
    system_calls: &[],
    metric: "board",
    also: &[],
    parameters: &[Parameter {
        name: "board",
        summary: "rows and columns of the board",
        domain: Domain::Number { default: 8, minimum: 1, maximum: 14 },
    }],
    source: "N-Queens as in the Phoronix Test Suite; counts: OEIS A000170",
    operations: 51,
    passes: 3,
    discarded: 1,
    spreads: false,
    fixed_layout: false,
    run,
};

/// Solutions for boards of 1 to 14 (OEIS A000170).
const KNOWN: [u64; 14] = [1, 0, 0, 2, 10, 4, 40, 92, 352, 724, 2_680, 14_200, 73_712, 365_596];

fn run(arguments: &Arguments, meter: &mut Meter) -> Result<(), Failure> {
    let board = arguments.size("board");
    meter.repeat(|| match solutions(black_box(board)) {
        count if count == KNOWN[board - 1] => Ok(()),
        count => Err(Failure::wrong(format!("{count} solutions on a board of {board}"))),
    })
}

fn solutions(board: usize) -> u64 {
    place((1 << board) - 1, 0, 0, 0)
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
        }
    }
}
