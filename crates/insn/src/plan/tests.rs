use super::*;
use alloc::vec::Vec;

const NOP: Decoded = Decoded {
    flow: Flow::Plain,
    reach: Reach::Nothing,
};
const LOAD: Decoded = Decoded {
    flow: Flow::Plain,
    reach: Reach::Once,
};
const PUSH: Decoded = Decoded {
    flow: Flow::Plain,
    reach: Reach::Own,
};
const ODD: Decoded = Decoded {
    flow: Flow::Plain,
    reach: Reach::Unknown,
};
const CALL: Decoded = Decoded {
    flow: Flow::Call,
    reach: Reach::Own,
};
const RET: Decoded = Decoded {
    flow: Flow::Return,
    reach: Reach::Own,
};
const IRET: Decoded = Decoded {
    flow: Flow::Leave,
    reach: Reach::Unknown,
};
const MARK: Decoded = Decoded {
    flow: Flow::Mark(Mark::Operation),
    reach: Reach::Nothing,
};
const STOS: Repeat = Repeat {
    width: 8,
    accesses: 1,
};
const REP: Decoded = Decoded {
    flow: Flow::Repeat(STOS),
    reach: Reach::Unknown,
};

fn planned(block: &[Line], flow: bool) -> Vec<(usize, Action)> {
    let mut actions = Vec::new();
    plan(block, flow, &mut |index, action| {
        actions.push((index, action))
    });
    actions
}

fn in_function(function: u32, kernel: bool, decoded: &[Decoded]) -> Vec<Line> {
    decoded
        .iter()
        .map(|&decoded| Line {
            function,
            kernel,
            first: false,
            in_page: true,
            decoded,
        })
        .collect()
}

fn of(function: u32, count: u32) -> Pending {
    Pending { function, count }
}

#[test]
fn a_block_that_cannot_be_left_is_added_once() {
    let block = in_function(7, true, &[NOP, PUSH, NOP, RET]);
    assert_eq!(planned(&block, false), [(3, Action::Add(of(7, 4)))]);
}

#[test]
fn an_access_that_can_fault_is_counted_when_its_successor_starts() {
    let block = in_function(7, true, &[NOP, LOAD, NOP, LOAD, NOP]);
    let expected = [
        (1, Action::Add(of(7, 1))),
        (3, Action::Add(of(7, 2))),
        (4, Action::Add(of(7, 2))),
    ];
    assert_eq!(planned(&block, false), expected);
}

#[test]
fn a_single_access_at_the_end_is_counted_after_it() {
    let block = in_function(7, true, &[NOP, LOAD]);
    assert_eq!(
        planned(&block, false),
        [
            (1, Action::Add(of(7, 1))),
            (1, Action::AddAfterAccess(of(7, 1)))
        ]
    );
}

#[test]
fn nothing_is_hooked_to_an_access_that_ends_on_another_page() {
    let mut block = in_function(7, true, &[LOAD]);
    block[0].in_page = false;
    assert_eq!(planned(&block, false), [(0, Action::Add(of(7, 1)))]);
}

#[test]
fn an_unknown_instruction_at_the_end_is_counted_as_it_starts() {
    let block = in_function(7, true, &[NOP, ODD]);
    assert_eq!(planned(&block, false), [(1, Action::Add(of(7, 2)))]);
}

#[test]
fn a_program_s_stack_can_fault() {
    let block = in_function(0, false, &[NOP, PUSH, NOP]);
    assert_eq!(
        planned(&block, false),
        [(1, Action::Add(of(0, 1))), (2, Action::Add(of(0, 2)))]
    );
}

#[test]
fn what_runs_into_the_next_function_is_added_to_its_own() {
    let mut block = in_function(7, true, &[NOP, NOP]);
    block.extend(in_function(8, true, &[NOP]));
    assert_eq!(
        planned(&block, false),
        [(2, Action::Add(of(7, 2))), (2, Action::Add(of(8, 1)))]
    );
}

#[test]
fn marks_take_what_is_pending_and_are_not_counted() {
    let block = in_function(0, false, &[NOP, MARK, NOP]);
    assert_eq!(
        planned(&block, false),
        [
            (1, Action::Mark(Mark::Operation, of(0, 1))),
            (2, Action::Add(of(0, 1)))
        ]
    );
}

#[test]
fn a_mark_in_the_kernel_is_a_nop() {
    assert_eq!(
        planned(&in_function(7, true, &[NOP, MARK]), false),
        [(1, Action::Add(of(7, 2)))]
    );
}

#[test]
fn repeated_instructions_are_counted_apart() {
    let block = in_function(7, true, &[NOP, REP]);
    assert_eq!(
        planned(&block, false),
        [(1, Action::Add(of(7, 1))), (1, Action::Repeat(STOS))]
    );
}

#[test]
fn calls_and_returns_are_reported_on_request() {
    let block = in_function(7, true, &[NOP, CALL]);
    assert_eq!(
        planned(&block, true),
        [(1, Action::Add(of(7, 2))), (1, Action::Call)]
    );
    let block = in_function(7, true, &[RET]);
    assert_eq!(
        planned(&block, true),
        [(0, Action::Add(of(7, 1))), (0, Action::Return)]
    );
    let block = in_function(7, true, &[NOP, IRET]);
    assert_eq!(planned(&block, true), [(1, Action::Leave(of(7, 2)))]);
    assert_eq!(planned(&block, false), [(1, Action::Add(of(7, 2)))]);
}

#[test]
fn entering_a_function_hands_over_what_ran_before() {
    let mut block = in_function(7, true, &[NOP]);
    block.extend(in_function(8, true, &[NOP]));
    block[1].first = true;
    assert_eq!(
        planned(&block, true),
        [(1, Action::Enter(of(7, 1))), (1, Action::Add(of(8, 1)))]
    );
}
