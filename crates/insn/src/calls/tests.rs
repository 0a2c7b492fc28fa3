//! Functions are numbers, stacks addresses; a guest runs so many instructions of a function, or of its program.
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
const STUBS: u32 = 17;
const STACK: u64 = 0xffff_c900_0000_4000;
const OTHER: u64 = 0xffff_c900_0001_4000;

/// A guest, whose counters count by themselves.
#[derive(Default)]
struct Guest {
    calls: Calls,
    functions: [u64; 20],
    program: u64,
    /// What an earlier guest ran.
    runs_before: [u64; 20],
    program_before: u64,
}

impl Guest {
    fn in_system_call() -> Self {
        let mut guest = Self::default();
        guest.runs_program(100);
        guest.enters(SYSCALL, Role::Entry);
        guest
    }

    fn runs(&mut self, function: u32, instructions: u64) {
        self.functions[function as usize] += instructions;
    }

    fn runs_program(&mut self, instructions: u64) {
        self.program += instructions;
    }

    fn follow(&mut self, act: impl FnOnce(&mut Calls, Counted<'_>)) {
        let counted = Counted {
            program: self.program,
            kernel: self.functions.iter().sum(),
            functions: &self.functions,
        };
        act(&mut self.calls, counted);
    }

    fn enters(&mut self, function: u32, role: Role) {
        self.follow(|calls, now| calls.enter(function, role, now));
    }

    /// A call from `function`, after so many instructions of it.
    fn calls(&mut self, function: u32, instructions: u64, pointer: u64, callee: u32) {
        self.runs(function, instructions);
        self.follow(|calls, now| calls.call(function, pointer, now));
        self.enters(callee, Role::Ordinary);
    }

    fn returns(&mut self, function: u32, instructions: u64, pointer: u64) {
        self.runs(function, instructions);
        self.follow(|calls, now| calls.returned(function, pointer, now));
    }

    fn leaves(&mut self, function: u32, instructions: u64) {
        self.runs(function, instructions);
        self.follow(Calls::leave);
    }

    /// The tree's places with instructions: `10>11=5`. The tree has of each function what was counted.
    fn folded(&mut self) -> String {
        self.follow(Calls::charge);
        let nodes = self.calls.tree().nodes();
        let mut in_tree = [0; 20];
        let mut lines: Vec<String> = Vec::new();
        for (index, node) in nodes.iter().enumerate().filter(|(_, node)| node.own > 0) {
            let mut path = Vec::new();
            let mut at = index as u32;
            while at > PROGRAM {
                path.push(format!("{}", nodes[at as usize].function));
                at = nodes[at as usize].parent;
            }
            match index as u32 {
                PROGRAM => path.push("program".into()),
                ROOT => path.push("root".into()),
                _ => in_tree[node.function as usize] += node.own,
            }
            path.reverse();
            lines.push(format!("{}={}", path.join(">"), node.own));
        }
        for (function, own) in in_tree.into_iter().enumerate() {
            assert_eq!(self.runs_before[function] + own, self.functions[function]);
        }
        let own = nodes[PROGRAM as usize].own;
        assert_eq!(self.program_before + own, self.program);
        lines.join(" ")
    }

    /// How often a function was entered, in all its places.
    fn entered(&self, function: u32) -> u64 {
        let places = &self.calls.tree().nodes()[PROGRAM as usize + 1..];
        let its = places.iter().filter(|node| node.function == function);
        its.map(|node| node.entered).sum()
    }
}

#[test]
fn a_system_call_s_tree() {
    let mut guest = Guest::in_system_call();
    guest.calls(SYSCALL, 10, STACK + 0x100, A);
    guest.calls(A, 3, STACK + 0x80, B);
    guest.returns(B, 7, STACK + 0x80);
    guest.returns(A, 1, STACK + 0x100);
    guest.leaves(SYSCALL, 4);
    guest.runs_program(5);
    assert_eq!(guest.folded(), "program=105 10=14 10>11=4 10>11>12=7");
    assert_eq!(guest.calls.unmatched(), 0);
}

#[test]
fn a_guest_that_is_another_one_has_a_tree_and_stacks_of_its_own() {
    let mut guest = Guest::in_system_call();
    guest.calls(SYSCALL, 10, STACK + 0x100, A);
    guest.runs(A, 2);
    guest.follow(|calls, now| calls.begin_anew(now));
    (guest.runs_before, guest.program_before) = (guest.functions, guest.program);
    guest.enters(SYSCALL, Role::Entry);
    guest.returns(SYSCALL, 3, STACK + 0x100);
    assert_eq!(guest.folded(), "10=3");
    assert_eq!((guest.calls.unmatched(), guest.calls.task()), (1, 0));
}

#[test]
fn a_tail_call_ends_with_the_return_of_who_jumped() {
    let mut guest = Guest::in_system_call();
    guest.calls(SYSCALL, 1, STACK + 0x100, A);
    guest.runs(A, 2);
    guest.enters(B, Role::Ordinary);
    guest.returns(B, 3, STACK + 0x100);
    guest.runs(SYSCALL, 4);
    assert_eq!(guest.folded(), "program=100 10=5 10>11=2 10>11>12=3");
}

#[test]
fn functions_that_jump_to_one_another_do_not_pile_up() {
    let mut guest = Guest::in_system_call();
    guest.calls(SYSCALL, 1, STACK + 0x100, A);
    for _ in 0..500 {
        guest.runs(A, 1);
        guest.enters(B, Role::Ordinary);
        guest.runs(B, 1);
        guest.enters(A, Role::Ordinary);
    }
    guest.returns(A, 1, STACK + 0x100);
    assert_eq!(guest.calls.current.frames.len(), 1);
    assert_eq!(guest.folded(), "program=100 10=1 10>11=501 10>11>12=500");
    assert_eq!((guest.entered(A), guest.entered(B)), (501, 500));
}

#[test]
fn a_loop_to_the_start_of_a_function_is_no_call() {
    let mut guest = Guest::in_system_call();
    guest.calls(SYSCALL, 1, STACK + 0x100, A);
    guest.runs(A, 5);
    guest.enters(A, Role::Ordinary);
    guest.returns(A, 5, STACK + 0x100);
    assert_eq!(guest.folded(), "program=100 10=1 10>11=10");
    assert_eq!(guest.entered(A), 2, "as often as its first instruction ran");
}

#[test]
fn recursion_is_a_call() {
    let mut guest = Guest::in_system_call();
    guest.calls(SYSCALL, 1, STACK + 0x100, A);
    guest.calls(A, 5, STACK + 0x80, A);
    guest.runs(A, 2);
    assert_eq!(guest.folded(), "program=100 10=1 10>11=5 10>11>11=2");
}

#[test]
fn a_retpoline_s_target_is_called_by_who_called_the_thunk() {
    let mut guest = Guest::in_system_call();
    guest.runs(SYSCALL, 1);
    guest.follow(|calls, now| calls.call(SYSCALL, STACK + 0x100, now));
    guest.enters(A, Role::Thunk);
    guest.runs(A, 1);
    guest.follow(|calls, now| calls.call(A, STACK + 0xf8, now)); // its call to itself
    guest.returns(A, 2, STACK + 0xf8); // to the address that it put there
    guest.enters(B, Role::Ordinary);
    guest.returns(B, 7, STACK + 0x100);
    guest.runs(SYSCALL, 1);
    assert_eq!(guest.folded(), "program=100 10=2 10>11=3 10>12=7");
    assert_eq!(guest.calls.unmatched(), 0);
}

#[test]
fn an_interrupt_is_a_tree_of_its_own_and_comes_back() {
    let mut guest = Guest::in_system_call();
    guest.calls(SYSCALL, 1, STACK + 0x100, A);
    guest.runs(A, 4);
    guest.enters(IRQ, Role::Entry);
    guest.calls(IRQ, 2, STACK + 0x40, B);
    guest.returns(B, 3, STACK + 0x40);
    guest.leaves(IRQ, 2);
    guest.returns(A, 4, STACK + 0x100);
    guest.leaves(SYSCALL, 1);
    guest.runs_program(4);
    assert_eq!(guest.folded(), "program=104 10=2 10>11=8 14=4 14>12=3");
}

#[test]
fn the_stub_that_an_interrupt_comes_by_belongs_to_nobody_that_it_interrupts() {
    let mut guest = Guest::in_system_call();
    guest.calls.are_stubs(STUBS);
    guest.calls(SYSCALL, 1, STACK + 0x100, A);
    guest.runs(A, 4);
    guest.runs(STUBS, 3);
    guest.enters(IRQ, Role::Entry);
    guest.leaves(IRQ, 2);
    guest.returns(A, 4, STACK + 0x100);
    guest.leaves(SYSCALL, 1);
    guest.runs_program(4);
    guest.runs(STUBS, 3);
    guest.enters(IRQ, Role::Entry);
    guest.leaves(IRQ, 2);
    assert_eq!(guest.folded(), "program=104 10=2 10>11=8 17=6 14=4");
    assert_eq!(guest.entered(STUBS), 0);
}

#[test]
fn a_jump_into_the_middle_of_a_function_is_a_place_of_that_function() {
    let mut guest = Guest::in_system_call();
    guest.calls(SYSCALL, 1, STACK + 0x100, A);
    guest.runs(A, 2);
    guest.runs(B, 5); // jumped to
    guest.runs(A, 3); // jumped back
    guest.calls(A, 1, STACK + 0x80, C);
    guest.returns(C, 4, STACK + 0x80);
    guest.returns(A, 1, STACK + 0x100);
    assert_eq!(
        guest.folded(),
        "program=100 10=1 10>11=7 10>11>12=5 10>11>13=4"
    );
    assert_eq!((guest.entered(A), guest.entered(B)), (1, 0));
}

#[test]
fn what_is_called_after_such_a_jump_is_called_by_where_it_led() {
    let mut guest = Guest::in_system_call();
    guest.calls(SYSCALL, 1, STACK + 0x100, A);
    guest.runs(A, 2);
    guest.calls(B, 5, STACK + 0x80, C);
    guest.returns(C, 4, STACK + 0x80);
    guest.runs(B, 1);
    guest.returns(A, 3, STACK + 0x100); // jumped back
    guest.runs(SYSCALL, 1);
    assert_eq!(
        guest.folded(),
        "program=100 10=2 10>11=5 10>11>12=6 10>11>12>13=4"
    );
    assert_eq!((guest.entered(B), guest.entered(C)), (0, 1));
}

#[test]
fn a_task_that_is_switched_away_goes_on_where_it_was() {
    let mut guest = Guest::in_system_call();
    guest.calls(SYSCALL, 1, STACK + 0x100, A);
    guest.runs(A, 2);
    guest.follow(|calls, now| calls.call(A, STACK + 0x80, now));
    guest.enters(SWITCH, Role::Switch);
    guest.returns(SWITCH, 3, OTHER + 0x90); // a task that was never seen
    guest.enters(FORK, Role::NewTask);
    guest.leaves(FORK, 3);
    guest.runs_program(42);
    guest.enters(SYSCALL, Role::Entry);
    guest.calls(SYSCALL, 1, OTHER + 0x180, C);
    guest.runs(C, 2);
    guest.follow(|calls, now| calls.call(C, OTHER + 0x80, now));
    guest.enters(SWITCH, Role::Switch);
    guest.returns(SWITCH, 3, STACK + 0x80); // back to the first
    guest.returns(A, 4, STACK + 0x100);
    guest.leaves(SYSCALL, 1);
    guest.runs_program(9);
    assert_eq!(
        guest.folded(),
        "program=151 10=3 10>11=6 10>11>15=3 16=3 10>13=2 10>13>15=3"
    );
    let tasks: Vec<_> = guest.calls.tasks().collect();
    let first = Task {
        kernel: 11,
        program: 109,
    };
    let second = Task {
        kernel: 9,
        program: 42,
    };
    assert_eq!(tasks, [(STACK & !0x3fff, first), (OTHER & !0x3fff, second)]);
}

#[test]
fn what_the_switch_calls_on_the_next_stack_ends_no_call_of_the_next_task() {
    let mut guest = Guest::in_system_call();
    guest.calls(SYSCALL, 1, STACK + 0x100, A);
    guest.runs(A, 2);
    guest.follow(|calls, now| calls.call(A, STACK + 0x80, now));
    guest.enters(SWITCH, Role::Switch);
    guest.calls(SWITCH, 3, OTHER + 0x70, B); // `save_fpregs_to_fpstate`
    guest.returns(B, 4, OTHER + 0x70);
    guest.returns(SWITCH, 2, OTHER + 0x90);
    guest.enters(FORK, Role::NewTask);
    guest.leaves(FORK, 3);
    assert_eq!(
        guest.folded(),
        "program=100 10=1 10>11=2 10>11>15=5 10>11>15>12=4 16=3"
    );
    assert_eq!(guest.entered(SWITCH), 1);
}

#[test]
fn the_c_part_of_a_new_task_s_start_is_called() {
    let mut guest = Guest::default();
    guest.runs_program(10);
    guest.enters(FORK, Role::NewTask);
    guest.runs(FORK, 2);
    guest.follow(|calls, now| calls.call(FORK, STACK + 0x100, now));
    guest.enters(A, Role::NewTask);
    guest.returns(A, 5, STACK + 0x100);
    guest.leaves(FORK, 1);
    guest.runs_program(2);
    assert_eq!(guest.folded(), "program=12 16=3 16>11=5");
    assert_eq!(guest.calls.unmatched(), 0);
}

#[test]
fn frames_that_were_thrown_away_are_forgotten() {
    let mut guest = Guest::in_system_call();
    guest.calls(SYSCALL, 1, STACK + 0x100, A);
    guest.calls(A, 1, STACK + 0x80, B);
    guest.returns(B, 4, STACK + 0x100); // as longjmp does
    guest.runs(SYSCALL, 2);
    assert_eq!(guest.folded(), "program=100 10=3 10>11=1 10>11>12=4");
}

#[test]
fn a_return_on_another_stack_ends_the_last_call() {
    let mut guest = Guest::in_system_call();
    guest.calls(SYSCALL, 1, STACK + 0x100, A);
    guest.returns(A, 4, OTHER + 0x18); // error_entry in 5.10 moves its return address
    guest.runs(SYSCALL, 2);
    assert_eq!(guest.folded(), "program=100 10=3 10>11=4");
    assert_eq!(guest.calls.unmatched(), 0);
    guest.returns(SYSCALL, 1, OTHER + 0x20);
    assert_eq!(guest.calls.unmatched(), 1);
}

#[test]
fn what_runs_before_the_first_call_stands_at_the_root() {
    let mut guest = Guest::default();
    guest.runs(A, 4);
    guest.runs(B, 2);
    guest.returns(B, 1, STACK + 0x100);
    assert_eq!(guest.folded(), "11=4 12=3");
    assert_eq!((guest.entered(A), guest.entered(B)), (0, 0));
}
