use super::*;
use crate::set_associative::Replacement;

const LINE: u64 = 64;
const PAGE_LINES: u64 = PAGE / LINE;

fn shapes(ahead: u64) -> Shapes {
    let shape = |size, ways| Shape {
        size,
        ways,
        line: LINE,
        replacement: Replacement::Lru,
    };
    Shapes {
        code: shape(32 << 10, 8),
        data: shape(32 << 10, 8),
        second: shape(128 << 10, 4),
        last: shape(1 << 20, 16),
        ahead,
        strides: 0,
    }
}

/// How often each level had the line, in a round over the addresses after one that warms.
fn second_round(ahead: u64, addresses: &[u64]) -> [u64; 4] {
    let mut hierarchy = Hierarchy::new(shapes(ahead));
    let mut found = [0; 4];
    for round in 0..2 {
        for &address in addresses {
            found[hierarchy.access(0, address) as usize] += round;
        }
    }
    found
}

fn stride(bytes: u64, size: u64) -> Vec<u64> {
    (0..size).step_by(bytes as usize).collect()
}

#[test]
fn a_stride_over_what_fits_is_found_where_it_fits() {
    for (size, expected) in [
        (32 << 10, [512, 0, 0, 0]),
        (128 << 10, [0, 2048, 0, 0]),
        (1 << 20, [0, 0, 16_384, 0]),
        (2 << 20, [0, 0, 0, 32_768]),
    ] {
        assert_eq!(second_round(0, &stride(LINE, size)), expected, "{size}");
    }
}

#[test]
fn accesses_to_one_line_miss_once() {
    assert_eq!(
        second_round(0, &stride(8, 2 << 20)),
        [7 * 32_768, 0, 0, 32_768]
    );
}

#[test]
fn a_set_of_the_first_level_evicts_itself() {
    // 64 sets: lines 4096 bytes apart share one.
    let in_one_set = |lines: u64| stride(4096, lines * 4096);
    assert_eq!(second_round(0, &in_one_set(8)), [8, 0, 0, 0]);
    assert_eq!(second_round(0, &in_one_set(9)), [0, 9, 0, 0]);
}

#[test]
fn a_set_of_the_second_level_evicts_itself() {
    // 512 sets of 4 ways: lines 32 KiB apart share one, and 9 of them the first level's, too.
    assert_eq!(
        second_round(0, &stride(32 << 10, 9 * (32 << 10))),
        [0, 0, 9, 0]
    );
}

#[test]
fn a_pointer_chase_in_any_order_misses_as_a_stride_does() {
    // Lines i × 40503 mod 2^15: every line of 2 MiB once, far apart (Knuth's multiplicative hashing). They are twice what
    // the last level holds, in the same order each round: nothing is left.
    let chase: Vec<u64> = (0..1 << 15)
        .map(|i| (i * 40_503 % (1 << 15)) * LINE)
        .collect();
    assert_eq!(second_round(0, &chase), [0, 0, 0, 1 << 15]);
    let near: Vec<u64> = (0..512).map(|i| (i * 167 % 512) * LINE).collect();
    assert_eq!(second_round(0, &near), [512, 0, 0, 0]);
}

#[test]
fn the_prefetcher_leaves_the_first_line_of_each_page_to_miss() {
    let lines = (2 << 20) / LINE;
    let pages = lines / PAGE_LINES;
    assert_eq!(
        second_round(1, &stride(LINE, 2 << 20)),
        [0, lines - pages, 0, pages]
    );
}

#[test]
fn the_prefetcher_is_of_no_use_to_every_second_line_where_it_looks_one_ahead() {
    let lines = (2 << 20) / (2 * LINE);
    assert_eq!(
        second_round(1, &stride(2 * LINE, 2 << 20)),
        [0, 0, 0, lines]
    );
    let pages = lines / (PAGE_LINES / 2);
    assert_eq!(
        second_round(2, &stride(2 * LINE, 2 << 20)),
        [0, lines - pages, 0, pages]
    );
}

#[test]
fn code_and_data_share_all_but_the_first_level() {
    let mut hierarchy = Hierarchy::new(shapes(0));
    assert_eq!(hierarchy.fetch(0), Level::Memory);
    assert_eq!(hierarchy.access(0, 0), Level::Second);
    assert_eq!(hierarchy.fetch(0), Level::First);
}

/// How often each level had the line, in the second of two rounds over one array by one instruction.
fn second_round_with_strides(ahead: u64, addresses: &[u64]) -> [u64; 4] {
    let mut hierarchy = Hierarchy::new(Shapes {
        strides: 16,
        ..shapes(ahead)
    });
    let mut found = [0; 4];
    for round in 0..2 {
        for &address in addresses {
            found[hierarchy.access(7, address) as usize] += round;
        }
    }
    found
}

#[test]
fn the_prefetcher_of_strides_leaves_what_begins_a_page_to_miss() {
    // Every fourth line of 4 MiB, which no level holds; the next line would be of no use.
    let lines = (4 << 20) / (4 * LINE);
    let pages = (4 << 20) / PAGE;
    // Where the array begins again, the stride is wrong once, and right from there on.
    assert_eq!(
        second_round_with_strides(0, &stride(4 * LINE, 4 << 20)),
        [0, lines - pages, 0, pages]
    );
}

#[test]
fn strides_of_a_page_and_more_are_not_prefetched() {
    assert_eq!(
        second_round_with_strides(0, &stride(PAGE, 128 << 20))[3],
        (128 << 20) / PAGE
    );
}

#[test]
fn two_instructions_in_turn_have_a_stride_each() {
    let mut hierarchy = Hierarchy::new(Shapes {
        strides: 16,
        ..shapes(0)
    });
    let mut from_memory = 0;
    // Up and down, one step in turn, each over 1 MiB of its own.
    for step in 0..(1 << 20) / (2 * LINE) {
        let up = (16 << 20) + step * 2 * LINE;
        let down = (64 << 20) - (step + 1) * 2 * LINE;
        from_memory += u64::from(hierarchy.access(1, up) == Level::Memory);
        from_memory += u64::from(hierarchy.access(2, down) == Level::Memory);
    }
    // In each page the first; and once the second, of which the stride was not known yet.
    assert_eq!(from_memory, 2 * ((1 << 20) / PAGE + 1));
}
