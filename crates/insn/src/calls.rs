//! Who called whom: a shadow of the guest's kernel stacks, kept from call and return instructions.
//!
//! A call stores its return address at the stack pointer, a return loads it from there: the two are matched by that
//! address, so that frames which were thrown away, retpolines and return thunks do not shift what follows. A jump to
//! the start of another function is a tail call; it ends with the return of the function that jumped. Interrupts,
//! exceptions and system calls start trees of their own. A task is told by its kernel stack (`__switch_to_asm` ends
//! with a return on another stack).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Where a new tree starts; also what runs before the first call.
pub const ROOT: u32 = 0;
/// The program, in user mode.
pub const PROGRAM: u32 = 1;
/// Kernel stacks are 16 KiB, and aligned (32 KiB with KASAN: then two keys for one task, and unmatched returns).
const STACK_BITS: u32 = 14;
/// Deeper than any kernel stack can hold.
const DEEPEST: usize = 1 << 10;

/// What is special about a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Nothing.
    Ordinary,
    /// The CPU jumps there: interrupt, exception, system call.
    Entry,
    /// Where a new task starts.
    NewTask,
    /// Changes to another task's stack.
    Switch,
    /// Jumps on to the function that is called (`__x86_indirect_thunk_rax`).
    Thunk,
}

/// What the kernel calls them, on x86-64 from 5.10 on.
pub fn role(name: &[u8]) -> Role {
    let starts = |prefix: &[u8]| name.starts_with(prefix);
    match name {
        b"__switch_to_asm" => Role::Switch,
        b"ret_from_fork" | b"ret_from_fork_asm" => Role::NewTask,
        b"entry_SYSCALL_64" | b"entry_SYSCALL_compat" | b"entry_SYSENTER_compat" | b"entry_INT80_compat" => Role::Entry,
        b"asm_common_interrupt" | b"asm_spurious_interrupt" => Role::Entry,
        _ if starts(b"__x86_indirect_thunk_") => Role::Thunk,
        _ if starts(b"asm_exc_") || starts(b"asm_sysvec_") => Role::Entry,
        _ => Role::Ordinary,
    }
}

/// One place in the tree: a function, called in one way.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its caller.
    pub parent: u32,
    /// Its number; meaningless for the first two.
    pub function: u32,
    /// Instructions of its own.
    pub own: u64,
    /// Times that it was entered.
    pub entered: u64,
    thunk: bool,
    children: Vec<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Call { pointer: u64 },
    Tail,
    Entry,
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    kind: Kind,
    /// The place to come back to.
    before: u32,
}

#[derive(Clone, Debug)]
struct Stack {
    frames: Vec<Frame>,
    here: u32,
}

impl Stack {
    fn new() -> Self {
        Self { frames: Vec::new(), here: PROGRAM }
    }
}

/// What a task ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Task {
    /// Instructions in the kernel.
    pub kernel: u64,
    /// Instructions in the program.
    pub program: u64,
}

/// The tree, and where in it the guest is.
pub struct Calls {
    nodes: Vec<Node>,
    current: Stack,
    /// The current task's stack; 0 until it is known.
    task: u64,
    others: BTreeMap<u64, Stack>,
    tasks: BTreeMap<u64, Task>,
    called: bool,
    switching: bool,
    charged: u64,
    unmatched: u64,
}

impl Default for Calls {
    fn default() -> Self {
        let top = Node { parent: ROOT, function: 0, own: 0, entered: 0, thunk: false, children: Vec::new() };
        Self {
            nodes: alloc::vec![top.clone(), top],
            current: Stack::new(),
            task: 0,
            others: BTreeMap::new(),
            tasks: BTreeMap::new(),
            called: false,
            switching: false,
            charged: 0,
            unmatched: 0,
        }
    }
}

impl Calls {
    /// `now` instructions have run in all: those since the last time belong to where the guest is.
    pub fn charge(&mut self, now: u64) {
        let ran = now - self.charged;
        self.charged = now;
        self.nodes[self.current.here as usize].own += ran;
        let task = self.tasks.entry(self.task).or_default();
        if self.current.here == PROGRAM {
            task.program += ran;
        } else {
            task.kernel += ran;
        }
    }

    /// Counts start again at 0; the guest stays where it is.
    pub fn reset(&mut self) {
        for node in &mut self.nodes {
            (node.own, node.entered) = (0, 0);
        }
        self.tasks.clear();
        self.unmatched = 0;
    }

    /// A function's first instruction is about to run.
    pub fn enter(&mut self, function: u32, role: Role, now: u64) {
        self.charge(now);
        let called = core::mem::take(&mut self.called);
        self.switching |= role == Role::Switch;
        match role {
            Role::Entry => self.enter_anew(function),
            Role::NewTask => {
                self.current = Stack::new();
                self.enter_anew(function);
            }
            _ if called => self.go_to_child(self.current.here, function),
            _ => self.jump_to(function),
        }
        match role {
            Role::Thunk => self.nodes[self.current.here as usize].thunk = true,
            Role::Switch => self.last_call().into_iter().for_each(|pointer| self.task_is(pointer)),
            _ => {}
        }
    }

    /// A call instruction of `function` has stored its return address at `pointer`.
    pub fn call(&mut self, function: u32, pointer: u64, now: u64) {
        self.called = false;
        self.be_in(function, now);
        if self.current.frames.len() < DEEPEST {
            self.current.frames.push(Frame { kind: Kind::Call { pointer }, before: self.current.here });
            self.called = true;
        }
    }

    /// A return instruction of `function` has loaded its return address from `pointer`.
    pub fn returned(&mut self, function: u32, pointer: u64, now: u64) {
        self.called = false;
        self.be_in(function, now);
        if core::mem::take(&mut self.switching) && pointer >> STACK_BITS != self.task {
            self.switch_to(pointer);
        }
        let matching = |frame: &Frame| frame.kind == Kind::Call { pointer };
        let found = self.current.frames.iter().rposition(matching).or_else(|| self.moved_call());
        match found {
            Some(depth) => self.back_to(depth),
            None => self.unmatched += 1,
        }
    }

    /// An `iret` or `sysret` is about to run; it is counted already.
    pub fn leave(&mut self, now: u64) {
        self.charge(now);
        self.called = false;
        match self.current.frames.iter().rposition(|frame| frame.kind == Kind::Entry) {
            Some(depth) => self.back_to(depth),
            None => self.current = Stack::new(),
        }
    }

    /// All places; the first two are the root and the program.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// What each task ran, by its stack.
    pub fn tasks(&self) -> impl Iterator<Item = (u64, Task)> + '_ {
        self.tasks.iter().map(|(stack, task)| (*stack << STACK_BITS, *task))
    }

    /// Returns that no call was found for.
    pub fn unmatched(&self) -> u64 {
        self.unmatched
    }

    fn enter_anew(&mut self, function: u32) {
        if self.current.here == PROGRAM {
            self.current.frames.clear();
        }
        self.push(Kind::Entry);
        self.go_to_child(ROOT, function);
    }

    fn jump_to(&mut self, function: u32) {
        if self.nodes[self.current.here as usize].function == function && self.current.here > PROGRAM {
            return; // A loop back to the function's start.
        }
        if self.nodes[self.current.here as usize].thunk {
            // Whoever called the thunk has called this function.
            return self.go_to_child(self.nodes[self.current.here as usize].parent, function);
        }
        let tails = self.current.frames.iter().rev().take_while(|frame| frame.kind == Kind::Tail).count();
        let first = self.current.frames.len() - tails;
        // Functions that jump to one another would pile up for ever.
        let again = (first..self.current.frames.len()).find(|&depth| {
            let before = self.current.frames[depth].before;
            before > PROGRAM && self.nodes[before as usize].function == function
        });
        match again {
            Some(depth) => self.back_to(depth),
            None => {
                self.push(Kind::Tail);
                self.go_to_child(self.current.here, function);
            }
        }
    }

    /// The guest is in `function`, whatever was thought.
    fn be_in(&mut self, function: u32, now: u64) {
        self.charge(now);
        let here = self.current.here;
        if here <= PROGRAM || self.nodes[here as usize].function != function {
            self.jump_to(function);
        }
    }

    /// The last call. Entry code takes its return address along as it changes stacks (`error_entry`).
    fn moved_call(&self) -> Option<usize> {
        let last = self.current.frames.iter().rposition(|frame| frame.kind != Kind::Tail)?;
        (self.current.frames[last].kind != Kind::Entry).then_some(last)
    }

    fn push(&mut self, kind: Kind) {
        if self.current.frames.len() >= DEEPEST {
            self.current.frames.clear();
        }
        self.current.frames.push(Frame { kind, before: self.current.here });
    }

    fn back_to(&mut self, depth: usize) {
        self.current.here = self.current.frames[depth].before;
        self.current.frames.truncate(depth);
    }

    fn last_call(&self) -> Option<u64> {
        self.current.frames.iter().rev().find_map(|frame| match frame.kind {
            Kind::Call { pointer } => Some(pointer),
            _ => None,
        })
    }

    /// The task is now known by its stack: what it ran so far under another key was its own.
    fn task_is(&mut self, pointer: u64) {
        let key = pointer >> STACK_BITS;
        if self.task == 0 {
            if let Some(early) = self.tasks.remove(&0) {
                let task = self.tasks.entry(key).or_default();
                task.kernel += early.kernel;
                task.program += early.program;
            }
        }
        self.task = key;
    }

    fn switch_to(&mut self, pointer: u64) {
        let next = pointer >> STACK_BITS;
        let stack = self.others.remove(&next).unwrap_or_else(|| Stack { frames: Vec::new(), here: ROOT });
        let left = core::mem::replace(&mut self.current, stack);
        self.others.insert(self.task, left);
        self.task = next;
    }

    fn go_to_child(&mut self, parent: u32, function: u32) {
        let known = self.nodes[parent as usize].children.iter().position(|&child| {
            let node = &self.nodes[child as usize];
            node.function == function && child > PROGRAM
        });
        let child = match known {
            Some(0) => self.nodes[parent as usize].children[0],
            Some(place) => {
                // What was called last is often called next.
                self.nodes[parent as usize].children.swap(0, place);
                self.nodes[parent as usize].children[0]
            }
            None => {
                let child = self.nodes.len() as u32;
                self.nodes.push(Node { parent, function, own: 0, entered: 0, thunk: false, children: Vec::new() });
                self.nodes[parent as usize].children.push(child);
                child
            }
        };
        self.nodes[child as usize].entered += 1;
        self.current.here = child;
    }
}

#[cfg(test)]
#[path = "calls_tests.rs"]
mod tests;
