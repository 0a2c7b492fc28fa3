use super::*;

const SIZES: Sizes = Sizes {
    history_bits: 12,
    returns: 16,
    targets: 64,
};

fn mispredicted(predictor: &mut Predictor, times: u64, taken: impl Fn(u64) -> bool) -> u64 {
    (0..times)
        .map(|time| u64::from(predictor.conditional(0x40_1000, taken(time))))
        .sum()
}

/// Pseudo-random directions that follow from nothing that is kept (splitmix64).
fn coin(time: u64) -> bool {
    let mixed = (time.wrapping_add(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ (mixed >> 31)) & 1 == 1
}

#[test]
fn a_branch_that_is_always_taken_costs_nothing_once_its_history_is_full() {
    let mut predictor = Predictor::new(SIZES);
    // Each direction shifts into the index: 12 counters are met for the first time, then always the same.
    assert!(mispredicted(&mut predictor, 100, |_| true) <= 13);
    assert_eq!(mispredicted(&mut predictor, 10_000, |_| true), 0);
}

#[test]
fn a_pattern_shorter_than_the_history_is_learned() {
    let mut predictor = Predictor::new(SIZES);
    let loop_of_seven = |time: u64| time % 7 != 6;
    mispredicted(&mut predictor, 7_000, loop_of_seven);
    assert_eq!(mispredicted(&mut predictor, 7_000, loop_of_seven), 0);
}

#[test]
fn a_loop_longer_than_the_history_mispredicts_its_end() {
    let mut predictor = Predictor::new(SIZES);
    let loop_of_fifty = |time: u64| time % 50 != 49;
    mispredicted(&mut predictor, 50_000, loop_of_fifty);
    assert_eq!(mispredicted(&mut predictor, 50_000, loop_of_fifty), 1_000);
}

#[test]
fn a_fair_coin_is_mispredicted_half_of_the_time() {
    let mut predictor = Predictor::new(SIZES);
    let times = 300_000;
    let wrong = mispredicted(&mut predictor, times, coin);
    assert!(
        wrong.abs_diff(times / 2) < times / 200,
        "{wrong} of {times}"
    );
}

#[test]
fn returns_are_known_down_to_the_depth_of_the_stack() {
    for (depth, expected) in [(1, 0), (16, 0), (17, 1), (40, 24)] {
        let mut predictor = Predictor::new(SIZES);
        for _ in 0..1000 {
            for level in 0..depth {
                predictor.called(0x1000 + level);
            }
            let wrong: u64 = (0..depth)
                .rev()
                .map(|level| u64::from(predictor.returned(0x1000 + level)))
                .sum();
            assert_eq!(wrong, expected, "depth {depth}");
        }
    }
}

#[test]
fn a_return_elsewhere_is_mispredicted_as_a_retpoline_wants_it() {
    let mut predictor = Predictor::new(SIZES);
    predictor.called(0x1000);
    assert!(predictor.returned(0x7000));
}

#[test]
fn an_indirect_branch_is_taken_to_go_where_it_went_last() {
    let mut predictor = Predictor::new(SIZES);
    let mut wrong = |times: u64, targets: u64| -> u64 {
        (0..times)
            .map(|time| u64::from(predictor.indirect(0x1000, 0x7000 + time % targets)))
            .sum()
    };
    assert_eq!(wrong(1000, 1), 1);
    assert_eq!(wrong(1000, 2), 999);
}

#[test]
fn more_indirect_branches_than_are_kept_evict_one_another() {
    for (branches, expected) in [(64, 0), (128, 12_800)] {
        let mut predictor = Predictor::new(SIZES);
        let mut round = || -> u64 {
            (0..branches)
                .map(|site| u64::from(predictor.indirect(site, site)))
                .sum()
        };
        round();
        let wrong: u64 = (0..100).map(|_| round()).sum();
        assert_eq!(wrong, expected);
    }
}
