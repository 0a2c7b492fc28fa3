//! Functions are numbers, stacks addresses; every event says how many instructions have run by then.
use super::*;
use alloc::format;
use alloc::string::String;

const SYSCALL: u32 = 10;
const A: u32 = 11;
const B: u32 = 12;
const C: u32 = 13;
const IRQ: u32 = 14;
const SWITCH: u32 = 15;
const FORK: u32 = 16;
const STACK: u64 = 0xffff_c900_0000_4000;
const OTHER: u64 = 0xffff_c900_0001_4000;

/// The tree's places with instructions: `10>11=5`.
fn folded(calls: &Calls) -> String {
    let mut lines: Vec<String> = Vec::new();
    for (index, node) in calls
        .tree()
        .nodes()
        .iter()
        .enumerate()
        .filter(|(_, node)| node.own > 0)
    {
        let mut path = Vec::new();
        let mut at = index as u32;
        while at > PROGRAM {
            path.push(format!("{}", calls.tree().nodes()[at as usize].function));
            at = calls.tree().nodes()[at as usize].parent;
        }
        if index as u32 == PROGRAM {
            path.push("program".into());
        }
        path.reverse();
        lines.push(format!("{}={}", path.join(">"), node.own));
    }
    lines.join(" ")
}

fn in_system_call() -> Calls {
    let mut calls = Calls::default();
    calls.enter(SYSCALL, Role::Entry, 100);
    calls
}

#[test]
fn a_system_call_s_tree() {
    let mut calls = in_system_call();
    calls.call(SYSCALL, STACK + 0x100, 110);
    calls.enter(A, Role::Ordinary, 110);
    calls.call(A, STACK + 0x80, 113);
    calls.enter(B, Role::Ordinary, 113);
    calls.returned(B, STACK + 0x80, 120);
    calls.returned(A, STACK + 0x100, 121);
    calls.leave(125);
    calls.charge(130);
    assert_eq!(folded(&calls), "program=105 10=14 10>11=4 10>11>12=7");
    assert_eq!(calls.unmatched(), 0);
}

#[test]
fn a_tail_call_ends_with_the_return_of_who_jumped() {
    let mut calls = in_system_call();
    calls.call(SYSCALL, STACK + 0x100, 101);
    calls.enter(A, Role::Ordinary, 101);
    calls.enter(B, Role::Ordinary, 103);
    calls.returned(B, STACK + 0x100, 106);
    calls.charge(110);
    assert_eq!(folded(&calls), "program=100 10=5 10>11=2 10>11>12=3");
}

#[test]
fn functions_that_jump_to_one_another_do_not_pile_up() {
    let mut calls = in_system_call();
    calls.call(SYSCALL, STACK + 0x100, 100);
    for now in 1..1000 {
        calls.enter(if now % 2 == 1 { A } else { B }, Role::Ordinary, 100 + now);
    }
    calls.returned(A, STACK + 0x100, 1100);
    assert_eq!(calls.current.frames.len(), 1);
    assert_eq!(folded(&calls), "program=100 10=1 10>11=500 10>11>12=499");
}

#[test]
fn a_loop_to_the_start_of_a_function_is_no_call() {
    let mut calls = in_system_call();
    calls.call(SYSCALL, STACK + 0x100, 100);
    calls.enter(A, Role::Ordinary, 100);
    calls.enter(A, Role::Ordinary, 105);
    calls.returned(A, STACK + 0x100, 110);
    assert_eq!(folded(&calls), "program=100 10>11=10");
}

#[test]
fn recursion_is_a_call() {
    let mut calls = in_system_call();
    calls.call(SYSCALL, STACK + 0x100, 100);
    calls.enter(A, Role::Ordinary, 100);
    calls.call(A, STACK + 0x80, 105);
    calls.enter(A, Role::Ordinary, 105);
    calls.charge(107);
    assert_eq!(folded(&calls), "program=100 10>11=5 10>11>11=2");
}

#[test]
fn a_retpoline_s_target_is_called_by_who_called_the_thunk() {
    let mut calls = in_system_call();
    calls.call(SYSCALL, STACK + 0x100, 100);
    calls.enter(A, Role::Thunk, 100);
    calls.call(A, STACK + 0xf8, 101); // its call to itself
    calls.returned(A, STACK + 0xf8, 103); // to the address that it put there
    calls.enter(B, Role::Ordinary, 103);
    calls.returned(B, STACK + 0x100, 110);
    calls.charge(111);
    assert_eq!(folded(&calls), "program=100 10=1 10>11=3 10>12=7");
    assert_eq!(calls.unmatched(), 0);
}

#[test]
fn an_interrupt_is_a_tree_of_its_own_and_comes_back() {
    let mut calls = in_system_call();
    calls.call(SYSCALL, STACK + 0x100, 100);
    calls.enter(A, Role::Ordinary, 100);
    calls.enter(IRQ, Role::Entry, 104);
    calls.call(IRQ, STACK + 0x40, 106);
    calls.enter(B, Role::Ordinary, 106);
    calls.returned(B, STACK + 0x40, 109);
    calls.leave(111);
    calls.returned(A, STACK + 0x100, 115);
    calls.leave(116);
    calls.charge(120);
    assert_eq!(folded(&calls), "program=104 10=1 10>11=8 14=4 14>12=3");
}

#[test]
fn a_task_that_is_switched_away_goes_on_where_it_was() {
    let mut calls = in_system_call();
    calls.call(SYSCALL, STACK + 0x100, 100);
    calls.enter(A, Role::Ordinary, 100);
    calls.call(A, STACK + 0x80, 102);
    calls.enter(SWITCH, Role::Switch, 102);
    calls.returned(SWITCH, OTHER + 0x90, 105); // a task that was never seen
    calls.enter(FORK, Role::NewTask, 105);
    calls.leave(108);
    calls.enter(SYSCALL, Role::Entry, 150);
    calls.call(SYSCALL, OTHER + 0x180, 151);
    calls.enter(C, Role::Ordinary, 151);
    calls.call(C, OTHER + 0x80, 153);
    calls.enter(SWITCH, Role::Switch, 153);
    calls.returned(SWITCH, STACK + 0x80, 156); // back to the first
    calls.returned(A, STACK + 0x100, 160);
    calls.leave(161);
    calls.charge(170);
    assert_eq!(
        folded(&calls),
        "program=151 10=2 10>11=6 10>11>15=3 16=3 10>13=2 10>13>15=3"
    );
    let tasks: Vec<_> = calls.tasks().collect();
    let first = Task {
        kernel: 10,
        program: 109,
    };
    let second = Task {
        kernel: 9,
        program: 42,
    };
    assert_eq!(tasks, [(STACK & !0x3fff, first), (OTHER & !0x3fff, second)]);
}

#[test]
fn the_c_part_of_a_new_task_s_start_is_called() {
    let mut calls = Calls::default();
    calls.enter(FORK, Role::NewTask, 10);
    calls.call(FORK, STACK + 0x100, 12);
    calls.enter(A, Role::NewTask, 12);
    calls.returned(A, STACK + 0x100, 17);
    calls.leave(18);
    calls.charge(20);
    assert_eq!(folded(&calls), "program=12 16=3 16>11=5");
    assert_eq!(calls.unmatched(), 0);
}

#[test]
fn frames_that_were_thrown_away_are_forgotten() {
    let mut calls = in_system_call();
    calls.call(SYSCALL, STACK + 0x100, 100);
    calls.enter(A, Role::Ordinary, 100);
    calls.call(A, STACK + 0x80, 101);
    calls.enter(B, Role::Ordinary, 101);
    calls.returned(B, STACK + 0x100, 105); // as longjmp does
    calls.charge(107);
    assert_eq!(folded(&calls), "program=100 10=2 10>11=1 10>11>12=4");
}

#[test]
fn a_return_on_another_stack_ends_the_last_call() {
    let mut calls = in_system_call();
    calls.call(SYSCALL, STACK + 0x100, 100);
    calls.enter(A, Role::Ordinary, 100);
    calls.returned(A, OTHER + 0x18, 104); // error_entry in 5.10 moves its return address
    calls.charge(106);
    assert_eq!(folded(&calls), "program=100 10=2 10>11=4");
    assert_eq!(calls.unmatched(), 0);
    calls.returned(SYSCALL, OTHER + 0x20, 107);
    assert_eq!(calls.unmatched(), 1);
}
