use super::*;

const SIZES: Sizes = Sizes {
    code: Size {
        entries: 128,
        ways: 8,
    },
    data: Size {
        entries: 64,
        ways: 4,
    },
    second: Size {
        entries: 1536,
        ways: 12,
    },
};
const PAGE: u64 = 4096;

/// Misses of the first level and walks, in a round over `pages` pages after one round that warms.
fn second_round(base: u64, stride: u64, pages: u64) -> (u64, u64) {
    let mut translation = Translation::new(SIZES);
    let mut round = || {
        (0..pages).fold((0, 0), |(misses, walks), page| {
            let key = translation.key(base + page * stride, bits_by_address(base));
            let found = translation.access(key);
            (
                misses + u64::from(found != Found::First),
                walks + u64::from(found == Found::Walked),
            )
        })
    };
    round();
    round()
}

#[test]
fn pages_that_fit_are_found_again() {
    assert_eq!(second_round(0x1000_0000, PAGE, 64), (0, 0));
}

#[test]
fn pages_beyond_the_first_level_are_found_in_the_second() {
    assert_eq!(second_round(0x1000_0000, PAGE, 128), (128, 0));
    assert_eq!(second_round(0x1000_0000, PAGE, 1536), (1536, 0));
}

#[test]
fn pages_beyond_both_are_walked_for_each_time() {
    assert_eq!(second_round(0x1000_0000, PAGE, 3072), (3072, 3072));
}

#[test]
fn pages_of_one_set_evict_one_another() {
    // 16 sets of 4 ways, 128 of 12: pages 128 apart share both.
    assert_eq!(second_round(0x1000_0000, 128 * PAGE, 4), (0, 0));
    assert_eq!(second_round(0x1000_0000, 128 * PAGE, 5), (5, 0));
    assert_eq!(second_round(0x1000_0000, 128 * PAGE, 13), (13, 13));
}

#[test]
fn all_of_memory_is_mapped_by_large_pages() {
    for base in [0xffff_8880_0000_0000, 0xff11_0000_0000_0000] {
        // 256 MiB are 128 pages of 2 MiB, which the second level holds.
        assert_eq!(second_round(base, 2 << 20, 128), (128, 0));
        // 64 pages of 4 KiB are one large one.
        assert_eq!(second_round(base, PAGE, 64), (0, 0));
    }
    // Where modules and vmalloc are, pages are small.
    assert_eq!(second_round(0xffff_c900_0000_0000, PAGE, 128), (128, 0));
}

#[test]
fn other_page_tables_make_programs_pages_unknown_and_keep_the_kernels() {
    let mut translation = Translation::new(SIZES);
    let found = |translation: &mut Translation, address| {
        let key = translation.key(address, bits_by_address(address));
        translation.access(key)
    };
    let (program, kernel) = (0x40_0000, 0xffff_ffff_8100_0000);
    found(&mut translation, program);
    found(&mut translation, kernel);
    translation.switch();
    assert_eq!(found(&mut translation, program), Found::Walked);
    assert_eq!(found(&mut translation, kernel), Found::First);
    translation.flush();
    assert_eq!(found(&mut translation, kernel), Found::Walked);
}

#[test]
fn page_tables_that_come_in_turn_for_long_never_take_one_another_s_translations() {
    let mut translation = Translation::new(SIZES);
    for _ in 0..300_000 {
        let key = translation.key(0x40_0000, SMALL);
        assert_eq!(translation.access(key), Found::Walked);
        translation.switch();
    }
}

#[test]
fn code_and_data_share_the_second_level_only() {
    let mut translation = Translation::new(SIZES);
    let key = translation.key(0x40_0000, SMALL);
    assert_eq!(translation.fetch(key), Found::Walked);
    assert_eq!(translation.access(key), Found::Second);
    assert_eq!(translation.fetch(key), Found::First);
}

#[test]
fn pages_of_three_sizes_are_different_ones_and_cover_what_they_cover() {
    let translation = Translation::new(SIZES);
    for base in [0x7fff_4000_0000, 0xffff_8880_4000_0000] {
        for bits in [SMALL, LARGE, HUGE] {
            let key = translation.key(base, bits);
            assert_eq!(translation.key(base + (1 << bits) - 1, bits), key);
            assert_ne!(translation.key(base + (1 << bits), bits), key);
        }
    }
    let mut all: Vec<u64> = [SMALL, LARGE, HUGE]
        .iter()
        .flat_map(|&bits| [0, 1 << 40, 0xffff_8880_0000_0000].map(|at| translation.key(at, bits)))
        .collect();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 9);
}
