use super::*;
use crate::block::Block;
use crate::branches;
use crate::hierarchy::Shapes;
use crate::kinds::{Branch, Class, CLASSES};
use crate::page_tables::tests::Tables;
use crate::page_tables::{Unknown, HUGE, LARGE, SMALL};
use crate::set_associative::{Replacement, Shape};
use crate::translation::{self, Size};

const LINE: u64 = 64;
const SITE: Site = Site {
    owner: 0,
    instruction: CODE,
};
const CODE: u64 = 0xffff_ffff_8100_0000;

/// 1/4 cycle an instruction, 10, 40 and 200 a line, 9 and 30 a translation, 16 a misprediction.
fn machine(ahead: u64) -> Machine {
    let shape = |size, ways| Shape {
        size,
        ways,
        line: LINE,
        replacement: Replacement::Lru,
    };
    let size = |entries, ways| Size { entries, ways };
    let mut classes = [0; CLASSES];
    classes[Class::Divide as usize] = 26_000;
    Machine {
        caches: Shapes {
            code: shape(32 << 10, 8),
            data: shape(32 << 10, 8),
            second: shape(128 << 10, 4),
            last: shape(1 << 20, 16),
            ahead,
            strides: 0,
        },
        translations: translation::Sizes {
            code: size(128, 8),
            data: size(64, 4),
            second: size(128, 4),
        },
        sample: 1,
        paging: None,
        branches: branches::Sizes {
            history_bits: 12,
            returns: 16,
            targets: 64,
        },
        costs: Costs {
            instruction: 250,
            string_bytes: 32,
            string: 30_000,
            levels: [10_000, 40_000, 200_000],
            stores: 50,
            translations: [9_000, 30_000],
            walk_level: 5_000,
            misprediction: 16_000,
            interrupt: 500_000,
            device: 1_000_000,
            classes,
        },
    }
}

fn block(address: u64, length: u64) -> Block {
    Block {
        owner: 0,
        address,
        physical: Some(address & 0xfff_ffff),
        length,
        width: 1,
        cost: 0,
        branch: Branch::None,
        branch_at: address + length - 2,
        change: Change::None,
        system_call: false,
        entry: false,
    }
}

fn run(model: &mut MachineModel, block: Block) {
    model.block(Box::leak(Box::new(block.kept())));
}

fn load(model: &mut MachineModel, address: u64) {
    model.access(
        || SITE,
        address,
        || 8,
        || false,
        || Place::Memory(address & 0xffff_ffff),
    );
}

/// What a round over the addresses costs after one that warms, in thousandths of a cycle.
fn second_round(ahead: u64, addresses: &[u64]) -> u64 {
    let mut model = MachineModel::new(&machine(ahead), 1, Box::new(Unknown));
    addresses
        .iter()
        .for_each(|&address| load(&mut model, address));
    let before = model.total();
    addresses
        .iter()
        .for_each(|&address| load(&mut model, address));
    model.total() - before
}

fn stride(bytes: u64, size: u64) -> Vec<u64> {
    (0..size).step_by(bytes as usize).collect()
}

#[test]
fn a_stride_costs_what_its_lines_and_its_pages_cost() {
    for (size, line, page) in [
        (32 << 10, 0, 0),
        (128 << 10, 10, 0),
        (512 << 10, 40, 9),
        (2 << 20, 200, 30),
    ] {
        let expected = size / LINE * line + size / PAGE * page;
        assert_eq!(
            second_round(0, &stride(LINE, size)),
            expected * 1000,
            "{size}"
        );
    }
}

#[test]
fn several_accesses_to_a_line_cost_as_one() {
    let each_word = second_round(0, &stride(8, 2 << 20));
    assert_eq!(each_word, second_round(0, &stride(LINE, 2 << 20)));
}

#[test]
fn with_prefetching_only_the_first_line_of_a_page_comes_from_memory() {
    let (pages, lines) = (512, 64);
    let a_page = 200 + (lines - 1) * 10 + 30;
    assert_eq!(
        second_round(1, &stride(LINE, 2 << 20)),
        pages * a_page * 1000
    );
}

#[test]
fn a_set_that_evicts_itself_costs_a_line_each_time() {
    let in_one_set = |lines: u64| stride(4096, lines * 4096);
    assert_eq!(second_round(0, &in_one_set(8)), 0);
    assert_eq!(second_round(0, &in_one_set(9)), 9 * 10_000);
}

/// Numbers below `most` in an order that is drawn at random (Fisher and Yates, with Knuth's MMIX generator).
fn shuffled(most: u64) -> Vec<u64> {
    let mut state = 17u64;
    let mut all: Vec<u64> = (0..most).collect();
    for left in (1..most).rev() {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        all.swap(left as usize, ((state >> 33) % (left + 1)) as usize);
    }
    all
}

#[test]
fn a_pointer_chase_at_random_costs_what_its_lines_and_a_share_of_its_pages_cost() {
    // The same order each round, over twice what the last level holds: no line is left. A page is one of 512, drawn at
    // random: of the 64 used last with probability 64/512, of the 128 with 128/512.
    let chase: Vec<u64> = shuffled(1 << 15).iter().map(|line| line * LINE).collect();
    let a_page = (128.0 - 64.0) / 512.0 * 9.0 + (512.0 - 128.0) / 512.0 * 30.0;
    let expected = ((1 << 15) as f64 * (200.0 + a_page) * 1000.0) as u64;
    let found = second_round(0, &chase);
    assert!(
        found.abs_diff(expected) < expected / 100,
        "{found} {expected}"
    );
}

#[test]
fn what_is_quick_is_exact_all_the_same() {
    // Every access again by a model without its memory of recent lines and pages.
    let mut state = 1u64;
    let mut addresses = Vec::new();
    for _ in 0..200_000 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let far = state >> 40 & 0xff_ffff;
        let base = [0x40_0000, 0xffff_c900_0000_0000, 0xffff_8880_0000_0000]
            [(state >> 37 & 3) as usize % 3];
        addresses.push(
            base + if state >> 35 & 3 == 0 {
                far
            } else {
                far & 0x3fff
            },
        );
    }
    let (mut quick, mut slow) = (
        MachineModel::new(&machine(1), 1, Box::new(Unknown)),
        MachineModel::new(&machine(1), 1, Box::new(Unknown)),
    );
    for (&address, length) in addresses.iter().zip([1, 8, 2, 16, 4].into_iter().cycle()) {
        let read = || false;
        let place = || Place::Memory(address & 0xffff_ffff);
        quick.access(|| SITE, address, || length, read, place);
        slow.recent.forget_pages(|_| {});
        slow.access_slowly(SITE, address, length, false, place);
    }
    assert_eq!(quick.counts(0), slow.counts(0));
    assert!(quick.counts(0).walks > 1000);
}

#[test]
fn a_store_is_held_up_by_its_share() {
    let mut model = MachineModel::new(&machine(0), 1, Box::new(Unknown));
    load(&mut model, 0);
    let before = model.total();
    model.access(|| SITE, LINE, || 8, || true, || Place::Memory(LINE));
    assert_eq!(model.total() - before, 100_000);
}

#[test]
fn an_access_across_a_page_costs_two_lines_and_two_pages() {
    let mut model = MachineModel::new(&machine(0), 1, Box::new(Unknown));
    load(&mut model, PAGE - 4);
    assert_eq!(model.total(), 2 * (200_000 + 30_000));
}

#[test]
fn a_device_costs_each_time() {
    let mut model = MachineModel::new(&machine(0), 1, Box::new(Unknown));
    for _ in 0..3 {
        model.access(
            || SITE,
            0xffff_c900_0000_0000,
            || 4,
            || true,
            || Place::Device,
        );
    }
    assert_eq!(model.total(), 30_000 + 3 * 1_000_000);
}

#[test]
fn code_that_fits_costs_nothing_and_code_that_does_not_a_line_each() {
    for (lines, expected) in [(512, 0), (1024, 1024 * 10_000)] {
        let mut model = MachineModel::new(&machine(0), 1, Box::new(Unknown));
        let round = |model: &mut MachineModel| {
            (0..lines).for_each(|line| run(model, block(CODE + line * LINE, LINE)));
        };
        round(&mut model);
        let before = model.total();
        round(&mut model);
        assert_eq!(model.total() - before, expected);
    }
}

/// A block that ends with a branch, then where it leads; what that costs beside the code.
fn led(model: &mut MachineModel, branch: Branch, to: u64) -> u64 {
    let before = model.counts(0).mispredictions;
    run(
        model,
        Block {
            branch,
            ..block(CODE, 16)
        },
    );
    run(model, block(to, 16));
    model.counts(0).mispredictions - before
}

#[test]
fn branches_are_settled_by_where_they_led() {
    let mut model = MachineModel::new(&machine(0), 1, Box::new(Unknown));
    let target = CODE + 0x100;
    let conditional = Branch::Conditional { target };
    for _ in 0..100 {
        led(&mut model, conditional, target);
    }
    assert_eq!(led(&mut model, conditional, target), 0);
    assert_eq!(led(&mut model, conditional, CODE + 16), 1);
    // Elsewhere than it can lead: something came between, and nothing is learned.
    assert_eq!(led(&mut model, conditional, CODE + 0x700), 0);
    assert_eq!(led(&mut model, Branch::IndirectCall, target), 1);
    assert_eq!(led(&mut model, Branch::Return, CODE + 16), 0);
    assert_eq!(led(&mut model, Branch::Call, target), 0);
    assert_eq!(led(&mut model, Branch::Return, CODE + 0x500), 1);
}

#[test]
fn what_an_interrupt_comes_between_is_not_predicted() {
    let mut model = MachineModel::new(&machine(0), 1, Box::new(Unknown));
    run(&mut model, block(CODE, 16));
    let before = model.total();
    run(
        &mut model,
        Block {
            branch: Branch::Return,
            ..block(CODE, 16)
        },
    );
    run(
        &mut model,
        Block {
            entry: true,
            ..block(CODE, 16)
        },
    );
    assert_eq!(model.total() - before, 500_000);
}

#[test]
fn a_system_call_is_no_interrupt() {
    let mut model = MachineModel::new(&machine(0), 1, Box::new(Unknown));
    run(
        &mut model,
        Block {
            system_call: true,
            ..block(CODE, 16)
        },
    );
    let before = model.total();
    run(
        &mut model,
        Block {
            entry: true,
            ..block(CODE, 16)
        },
    );
    assert_eq!(model.total() - before, 0);
}

#[test]
fn other_page_tables_cost_the_programs_pages_anew() {
    let mut model = MachineModel::new(&machine(0), 1, Box::new(Unknown));
    run(
        &mut model,
        Block {
            change: Change::Tables,
            ..block(CODE, 16)
        },
    );
    load(&mut model, 0x1000);
    let before = model.total();
    load(&mut model, 0x1000);
    assert_eq!(model.total() - before, 0);
    run(&mut model, block(CODE, 16));
    load(&mut model, 0x1000);
    assert_eq!(model.total() - before, 30_000);
}

#[test]
fn a_page_that_is_mapped_elsewhere_is_looked_for_there() {
    let mut model = MachineModel::new(&machine(0), 1, Box::new(Unknown));
    load(&mut model, 0x1000);
    run(
        &mut model,
        Block {
            change: Change::Page,
            ..block(CODE, 16)
        },
    );
    run(&mut model, block(CODE, 16));
    let before = model.total();
    model.access(|| SITE, 0x1000, || 8, || false, || Place::Memory(0x7000));
    assert_eq!(model.total() - before, 200_000);
}

#[test]
fn a_repeated_string_instruction_costs_its_start_and_its_lines_not_its_passes() {
    let mut model = MachineModel::new(&machine(0), 1, Box::new(Unknown));
    let copy: &'static KeptBlock = Box::leak(Box::new(block(CODE, 2).kept()));
    model.block(copy);
    let before = model.total();
    for byte in 0..4096 {
        model.string_block(copy);
        let place = || Place::Memory(0x1_0000 + byte);
        model.access(|| SITE, 0x1_0000 + byte, || 1, || false, place);
    }
    model.string_done(0);
    let expected = 64 * 200_000 + 30_000 + 30_000;
    assert_eq!(model.total() - before, expected);
    assert_eq!(model.costs().base(1, 4096), 250 + 128_000);
}

#[test]
fn a_costly_instruction_costs_by_its_class() {
    let mut model = MachineModel::new(&machine(0), 1, Box::new(Unknown));
    run(&mut model, block(CODE, 16));
    let before = model.total();
    let cost = model.costs().of(Class::Divide);
    run(
        &mut model,
        Block {
            cost,
            ..block(CODE, 16)
        },
    );
    assert_eq!(model.total() - before, 26_000);
}

#[test]
fn resetting_keeps_what_was_learned() {
    let mut model = MachineModel::new(&machine(0), 1, Box::new(Unknown));
    load(&mut model, 0);
    model.reset();
    load(&mut model, 0);
    assert_eq!(model.counts(0), Counts::default());
}

#[test]
fn a_block_that_was_left_half_way_settles_no_branch() {
    let mut model = MachineModel::new(&machine(0), 1, Box::new(Unknown));
    assert_eq!(led(&mut model, Branch::Return, CODE + 8), 0);
    assert_eq!(led(&mut model, Branch::IndirectJump, CODE + 8), 0);
    assert_eq!(led(&mut model, Branch::Call, CODE + 8), 0);
    assert_eq!(led(&mut model, Branch::Return, CODE + 16), 1);
}

#[test]
fn behind_a_barrier_no_indirect_branch_is_known() {
    let mut model = MachineModel::new(&machine(0), 1, Box::new(Unknown));
    let target = CODE + 0x100;
    assert_eq!(led(&mut model, Branch::IndirectJump, target), 1);
    assert_eq!(led(&mut model, Branch::IndirectJump, target), 0);
    run(
        &mut model,
        Block {
            change: Change::Targets,
            ..block(CODE, 16)
        },
    );
    assert_eq!(led(&mut model, Branch::IndirectJump, target), 1);
}

#[test]
fn data_that_is_flushed_comes_from_the_second_level() {
    let mut model = MachineModel::new(&machine(0), 1, Box::new(Unknown));
    load(&mut model, 0x1000);
    run(
        &mut model,
        Block {
            change: Change::Data,
            ..block(CODE, 16)
        },
    );
    run(&mut model, block(CODE, 16));
    let before = model.total();
    load(&mut model, 0x1000);
    assert_eq!(model.total() - before, 10_000);
}

/// A machine with paging-structure caches, whose guest has these page tables.
fn walking(tables: Tables) -> MachineModel {
    let machine = Machine {
        paging: Some([32, 4, 2]),
        ..machine(0)
    };
    MachineModel::new(&machine, 1, Box::new(tables))
}

/// What a load costs beside its own line, which is in the first level: it was used before.
fn translating(model: &mut MachineModel, address: u64) -> u64 {
    let before = model.total();
    model.access(|| SITE, address, || 8, || false, || Place::Memory(0));
    model.total() - before
}

#[test]
fn a_walk_costs_the_entries_that_it_reads_and_their_lines() {
    let mut tables = Tables::new(4);
    (0..600).for_each(|page| tables.map(page * PAGE, SMALL, 0));
    let mut model = walking(tables);
    // The line, the walk, three more entries, and a line of page tables from memory for each of the four.
    assert_eq!(
        translating(&mut model, 0),
        200_000 + 30_000 + 3 * 5_000 + 4 * 200_000
    );
    // The next seven entries are of the same line, and the upper levels' are kept.
    for page in 1..8 {
        assert_eq!(translating(&mut model, page * PAGE), 30_000, "{page}");
    }
    assert_eq!(translating(&mut model, 8 * PAGE), 30_000 + 200_000);
    // The next table: its own line, and that of the directory, which the first walk has read.
    assert_eq!(
        translating(&mut model, 512 * PAGE),
        30_000 + 5_000 + 200_000
    );
    assert_eq!(model.counts(0).walks, 10);
    assert_eq!(model.counts(0).data_misses, 1 + 4 + 1 + 1);
}

#[test]
fn a_stride_over_pages_reads_a_line_of_page_tables_for_eight_of_them() {
    let pages = 512 * 8;
    let mut tables = Tables::new(4);
    (0..pages).for_each(|page| tables.map(page * PAGE, SMALL, 0));
    let mut model = walking(tables);
    let round =
        |model: &mut MachineModel| (0..pages).map(|page| translating(model, page * PAGE)).sum();
    let _: u64 = round(&mut model);
    let second: u64 = round(&mut model);
    // Each page is walked for. The 8 tables are 512 lines, as many as the first level holds; but one of its sets has the
    // line of data as well, so that the first lines of the tables throw out one another.
    assert_eq!(second, pages * 30_000 + 8 * 10_000);
}

#[test]
fn large_and_huge_pages_are_translated_once() {
    for (bits, span) in [(LARGE, 2u64 << 20), (HUGE, 1 << 30)] {
        let mut tables = Tables::new(4);
        tables.map(1 << 39, bits, 0);
        let mut model = walking(tables);
        translating(&mut model, 1 << 39);
        for part in 1..200 {
            let address = (1 << 39) + part * (span / 200 & !63);
            translating(&mut model, address);
        }
        assert_eq!(model.counts(0).walks, 1, "{bits}");
    }
}

#[test]
fn a_change_of_page_tables_or_of_one_page_empties_the_paging_caches() {
    for change in [Change::Tables, Change::Page] {
        let mut tables = Tables::new(4);
        (0..2).for_each(|page| tables.map(page * PAGE, SMALL, 0));
        let mut model = walking(tables);
        translating(&mut model, 0);
        run(
            &mut model,
            Block {
                change,
                ..block(CODE, 16)
            },
        );
        run(&mut model, block(CODE, 16));
        // All four entries again, from the first level.
        assert_eq!(translating(&mut model, PAGE), 30_000 + 3 * 5_000);
    }
}

#[test]
fn where_page_tables_are_not_known_a_walk_costs_its_levels_only() {
    let machine = Machine {
        paging: Some([32, 4, 2]),
        ..machine(0)
    };
    let mut model = MachineModel::new(&machine, 1, Box::new(Unknown));
    assert_eq!(translating(&mut model, 0), 200_000 + 30_000 + 3 * 5_000);
    assert_eq!(translating(&mut model, PAGE), 30_000);
    assert_eq!(model.counts(0).data_misses, 1);
}

#[test]
fn what_is_quick_is_exact_where_walks_use_the_caches_as_well() {
    let mut models = [0, 1].map(|_| {
        let mut tables = Tables::new(4);
        (0..4096).for_each(|page| tables.map(page * PAGE, SMALL, 0));
        walking(tables)
    });
    let mut state = 1u64;
    for _ in 0..20_000 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let near = if state >> 35 & 3 == 0 {
            0xff_ffff
        } else {
            0x3fff
        };
        let address = state >> 40 & near;
        let [quick, slow] = &mut models;
        quick.access(|| SITE, address, || 4, || false, || Place::Memory(address));
        slow.access_slowly(SITE, address, 4, false, || Place::Memory(address));
    }
    assert_eq!(models[0].counts(0), models[1].counts(0));
    assert!(models[0].counts(0).walks > 1000);
}

/// What a round over the addresses costs after one that warms, by a machine of which every ninth line is modelled.
fn sampled_round(ahead: u64, addresses: &[u64]) -> (u64, Counts) {
    let machine = Machine {
        sample: 9,
        ..machine(ahead)
    };
    let mut model = MachineModel::new(&machine, 1, Box::new(Unknown));
    let round =
        |model: &mut MachineModel| addresses.iter().for_each(|&address| load(model, address));
    round(&mut model);
    model.reset();
    let before = model.total();
    round(&mut model);
    (model.total() - before, model.counts(0))
}

#[test]
fn sampled_sets_stand_for_all_where_all_are_alike() {
    for size in [32 << 10, 128 << 10, 512 << 10, 2 << 20] {
        for bytes in [8, LINE] {
            let addresses = stride(bytes, size);
            for ahead in [0, 1] {
                let (sampled, _) = sampled_round(ahead, &addresses);
                assert_eq!(
                    sampled,
                    second_round(ahead, &addresses),
                    "{size} {bytes} {ahead}"
                );
            }
        }
    }
}

#[test]
fn a_sample_of_a_pointer_chase_is_near_the_whole() {
    let chase: Vec<u64> = shuffled(1 << 12).iter().map(|line| line * LINE).collect();
    let (sampled, counts) = sampled_round(0, &chase);
    let whole = second_round(0, &chase);
    assert!(sampled.abs_diff(whole) < whole / 50, "{sampled} {whole}");
    assert_eq!(counts.data_misses, 1 << 12);
}

#[test]
fn translations_and_branches_are_modelled_whole() {
    let machine = Machine {
        sample: 63,
        ..machine(0)
    };
    let mut model = MachineModel::new(&machine, 1, Box::new(Unknown));
    // The second line of each page is not modelled; its translation is.
    (0..10).for_each(|page| load(&mut model, page * PAGE + LINE));
    assert_eq!(model.counts(0).walks, 10);
    assert_eq!(model.counts(0).data_misses, 0);
    assert_eq!(model.total(), 10 * 30_000);
}

#[test]
fn a_copy_to_the_same_place_in_another_page_is_quick_and_exact() {
    let mut models = [0, 1].map(|_| MachineModel::new(&machine(1), 1, Box::new(Unknown)));
    let mut addresses = Vec::new();
    for round in 0..40u64 {
        // Page to page, byte by byte, with something of another page in the same set now and then.
        let (from, to) = (
            0x40_0000 + round % 5 * PAGE,
            0x1_0000_0000 + round % 7 * 9 * PAGE,
        );
        for byte in 0..PAGE {
            addresses.extend([from + byte, to + byte]);
            if byte % 97 == round {
                addresses.push(0x7f00_0000_0000 + (round % 11) * PAGE + byte);
            }
        }
    }
    for &address in &addresses {
        let [quick, slow] = &mut models;
        let place = || Place::Memory(address & 0xffff_ffff);
        quick.access(|| SITE, address, || 1, || false, place);
        slow.access_slowly(SITE, address, 1, false, place);
    }
    assert_eq!(models[0].counts(0), models[1].counts(0));
    assert!(models[0].counts(0).data_misses > 1000);
}

#[test]
fn code_in_parts_of_one_large_page_is_translated_once_until_another_page_comes_between() {
    let mut model = MachineModel::new(&machine(0), 1, Box::new(Unknown));
    // The image has pages of 2 MiB, a program one of 4 KiB; 128 translations of code in 16 sets.
    for part in 0..512 {
        run(&mut model, block(CODE + part * PAGE, 16));
    }
    assert_eq!(model.counts(0).walks, 1);
    run(&mut model, block(CODE + (2 << 20), 16));
    run(&mut model, block(0x40_0000, 16));
    run(&mut model, block(0x40_1000, 16));
    assert_eq!(model.counts(0).walks, 4);
    let change = Block {
        change: Change::All,
        ..block(CODE, 16)
    };
    run(&mut model, change);
    run(&mut model, block(CODE + PAGE, 16));
    assert_eq!(model.counts(0).walks, 5);
}
