use super::*;

const LINES_OF_64_BYTES: Lines = Lines {
    bits: 6,
    sets: 64,
    has_two: true,
    ignored: 0,
};

fn told(use_of: impl FnOnce(&mut dyn FnMut(u64))) -> Vec<u64> {
    let mut all = Vec::new();
    use_of(&mut |physical| all.push(physical));
    all
}

fn used(recent: &mut Recent, address: u64) {
    recent.use_page(address, address >> PAGE_BITS, 0, |_| {});
    recent.use_line(address >> 6, address, |_| {});
}

#[test]
fn what_was_used_last_is_covered_as_far_as_the_longest_access_reaches() {
    let mut recent = Recent::new(LINES_OF_64_BYTES, (1, 4));
    assert!(!recent.covers(0x1000, 8));
    used(&mut recent, 0x1000);
    assert!(recent.covers(0x1000, 16) && recent.covers(0x1030, 16) && recent.covers(0x1031, 8));
    assert!(!recent.covers(0x1031, 16) && !recent.covers(0x1040, 8));
    assert!(recent.covers_or_swaps(0x103c, 4) && !recent.covers_or_swaps(0x103d, 4));
    used(&mut recent, 0x1040);
    assert!(recent.covers(0x1000, 8) && recent.covers(0x1040, 8));
}

#[test]
fn another_page_of_the_set_takes_its_place_also_where_both_are_parts_of_one() {
    let mut recent = Recent::new(LINES_OF_64_BYTES, (2, 1));
    recent.use_page(0x5000, 8, 0, |_| {});
    recent.use_page(0x20_0000, 7, 1, |_| {});
    assert!(recent.has_page(0x20_0fff) && recent.has_page(0x5000));
    recent.use_page(0x20_1000, 7, 1, |_| {});
    assert!(!recent.has_page(0x20_0000) && recent.has_page(0x20_1000));
    recent.use_page(0x9000, 9, 1, |_| {});
    assert!(!recent.has_page(0x20_1000) && recent.has_page(0x9000));
    // In the place of the page at 0x5000, and of another set: the page at 0x9000 goes with that set only.
    recent.use_page(0x4_5000, 10, 1, |_| {});
    assert!(!recent.has_page(0x5000) && !recent.has_page(0x9000));
    recent.use_page(0x6000, 11, 0, |_| {});
    assert!(recent.has_page(0x4_5000));
    recent.forget_pages(|_| {});
    assert!(!recent.has_page(0x4_5000) && !recent.has_page(0x6000));
}

#[test]
fn two_translations_in_turn_change_places_and_the_buffer_is_told_once() {
    let mut recent = Recent::new(LINES_OF_64_BYTES, (1, 2));
    used(&mut recent, 0x1000);
    recent.use_page(0x2000, 2, 0, |_| {});
    recent.use_line(0x2040 >> 6, 0x2040, |_| {});
    assert!(!recent.covers_or_swaps(0x1000, 8));
    recent.is_memory(0x2040);
    recent.use_page(0x1000, 1, 0, |_| {});
    recent.is_memory(0x1000);
    for _ in 0..3 {
        assert!(!recent.covers(0x2040, 8) && recent.covers_or_swaps(0x2040, 8));
        assert!(!recent.covers(0x1000, 8) && recent.covers_or_swaps(0x1000, 8));
    }
    assert!(recent.covers_or_swaps(0x2040, 8));
    assert_eq!(told(|tell| recent.use_page(0x3000, 3, 0, tell)), [1, 2]);
    assert!(!recent.covers_or_swaps(0x1000, 8) && !recent.has_page(0x2040));
    assert!(recent.covers_or_swaps(0x2040, 8));
    assert_eq!(told(|tell| recent.forget_pages(tell)), [3, 2]);
    assert!(!recent.covers_or_swaps(0x2040, 8));
}

#[test]
fn two_lines_in_turn_change_places_and_the_cache_is_told_once() {
    let mut recent = Recent::new(LINES_OF_64_BYTES, (2, 4));
    recent.use_page(0x1000, 1, 0, |_| {});
    recent.use_page(0x2000, 2, 1, |_| {});
    recent.use_line(0x1000 >> 6, 0x1000, |_| {});
    recent.use_line(0x2000 >> 6, 0x2000, |_| {});
    for _ in 0..3 {
        assert!(!recent.covers(0x1000, 8) && recent.covers_or_swaps(0x1000, 8));
        assert!(!recent.covers(0x2000, 8) && recent.covers_or_swaps(0x2000, 8));
    }
    assert!(recent.covers_or_swaps(0x1000, 8));
    assert_eq!(
        told(|tell| recent.use_line(0x3000 >> 6, 0x3000, tell)),
        [0x2000, 0x1000]
    );
    assert!(!recent.covers_or_swaps(0x2000, 8));
    assert!(told(|tell| recent.forget_lines(tell)).is_empty());
    assert!(!recent.covers_or_swaps(0x1000, 8));
}

#[test]
fn a_line_that_needs_not_be_known_is_covered_in_a_page_that_is() {
    let mut recent = Recent::new(
        Lines {
            ignored: 0b110,
            ..LINES_OF_64_BYTES
        },
        (1, 4),
    );
    assert!(!recent.covers(0x1040, 8));
    recent.use_page(0x1000, 1, 0, |_| {});
    assert!(recent.covers(0x1040, 8) && recent.covers(0x1080, 8));
    assert!(!recent.covers(0x1000, 8) && !recent.covers(0x10c0, 8));
    assert!(recent.covers_or_swaps(0x107c, 8) && !recent.covers_or_swaps(0x10bc, 8));
}

#[test]
fn without_room_for_two_only_the_last_is_known() {
    let mut recent = Recent::new(
        Lines {
            has_two: false,
            sets: 1,
            ..LINES_OF_64_BYTES
        },
        (1, 4),
    );
    used(&mut recent, 0x1000);
    used(&mut recent, 0x1040);
    assert!(recent.covers(0x1040, 8) && !recent.covers_or_swaps(0x1000, 8));
}
