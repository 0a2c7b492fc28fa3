use super::*;

/// First level: two sets of two ways; last level: one set of eight ways.
fn small() -> Caches {
    let first = Shape::read("256:2:64").unwrap();
    Caches::new(
        Shapes {
            code: first,
            data: first,
            last: Shape::read("512:8:64").unwrap(),
        },
        2,
    )
}

#[test]
fn what_was_used_stays_until_its_set_is_full() {
    let mut caches = small();
    for address in [0x000, 0x080, 0x000, 0x100, 0x000, 0x080] {
        caches.access(0, address, 8, false);
    }
    // 0x000, 0x080 and 0x100 share a set: 0x080 is the one used longest ago when 0x100 comes.
    let expected = Counts {
        loads: 6,
        data_misses: 4,
        last_misses: 3,
        ..Counts::default()
    };
    assert_eq!(caches.counts(0), expected);
}

#[test]
fn other_sets_are_not_touched() {
    let mut caches = small();
    for address in [0x000, 0x040, 0x080, 0x0c0, 0x000, 0x040, 0x080, 0x0c0] {
        caches.access(0, address, 8, true);
    }
    assert_eq!(
        caches.counts(0),
        Counts {
            stores: 8,
            data_misses: 4,
            last_misses: 4,
            ..Counts::default()
        }
    );
}

#[test]
fn an_access_across_lines_touches_both() {
    let mut caches = small();
    caches.access(0, 0x3c, 8, false);
    caches.access(0, 0x40, 8, false);
    assert_eq!(
        caches.counts(0),
        Counts {
            loads: 2,
            data_misses: 2,
            last_misses: 2,
            ..Counts::default()
        }
    );
}

#[test]
fn code_and_data_share_the_last_level_only() {
    let mut caches = small();
    caches.fetch(0, 0x1000, 16);
    caches.access(1, 0x1000, 4, false);
    assert_eq!(
        caches.counts(0),
        Counts {
            code_misses: 1,
            last_misses: 1,
            ..Counts::default()
        }
    );
    assert_eq!(
        caches.counts(1),
        Counts {
            loads: 1,
            data_misses: 1,
            ..Counts::default()
        }
    );
}

#[test]
fn resetting_keeps_the_caches_warm() {
    let mut caches = small();
    caches.access(0, 0, 8, false);
    caches.reset();
    caches.access(0, 0, 8, false);
    assert_eq!(
        caches.counts(0),
        Counts {
            loads: 1,
            ..Counts::default()
        }
    );
}
