//! Who called whom: a shadow of the guest's kernel stacks, kept from call and return instructions.
//!
//! A call stores its return address at the stack pointer, a return loads it from there: the two are matched by that
//! address, so that frames which were thrown away, retpolines and return thunks do not shift what follows. A jump to
//! the start of another function is a tail call; it ends with the return of the function that jumped. Interrupts,
//! exceptions and system calls start trees of their own. A task is told by its kernel stack (`__switch_to_asm` ends
//! with a return on another stack).

use crate::roles::Role;
use crate::tree::{Tree, PROGRAM, ROOT};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Kernel stacks are 16 KiB, and aligned (32 KiB with KASAN: then two keys for one task, and unmatched returns).
const STACK_BITS: u32 = 14;
/// Deeper than any kernel stack can hold.
const DEEPEST: usize = 1 << 10;

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
        Self {
            frames: Vec::new(),
            here: PROGRAM,
        }
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
    tree: Tree,
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
        Self {
            tree: Tree::default(),
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
        self.tree.at(self.current.here).own += ran;
        let task = self.tasks.entry(self.task).or_default();
        if self.current.here == PROGRAM {
            task.program += ran;
        } else {
            task.kernel += ran;
        }
    }

    /// The task that runs, by its stack; 0 until it is known.
    pub fn task(&self) -> u64 {
        self.task
    }

    /// Counts start again at 0; the guest stays where it is.
    pub fn reset(&mut self) {
        self.tree.reset();
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
            // From 6.5 on `ret_from_fork` is what `ret_from_fork_asm` calls.
            Role::NewTask if !called => {
                self.current = Stack::new();
                self.enter_anew(function);
            }
            _ if called => self.go_to_child(self.current.here, function),
            _ => self.jump_to(function),
        }
        match role {
            Role::Thunk => self.tree.at(self.current.here).thunk = true,
            Role::Switch => self
                .last_call()
                .into_iter()
                .for_each(|pointer| self.task_is(pointer)),
            _ => {}
        }
    }

    /// A call instruction of `function` has stored its return address at `pointer`.
    pub fn call(&mut self, function: u32, pointer: u64, now: u64) {
        self.called = false;
        self.be_in(function, now);
        if self.current.frames.len() < DEEPEST {
            self.current.frames.push(Frame {
                kind: Kind::Call { pointer },
                before: self.current.here,
            });
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
        let found = self
            .current
            .frames
            .iter()
            .rposition(matching)
            .or_else(|| self.moved_call());
        match found {
            Some(depth) => self.back_to(depth),
            None => self.unmatched += 1,
        }
    }

    /// An `iret` or `sysret` is about to run; it is counted already.
    pub fn leave(&mut self, now: u64) {
        self.charge(now);
        self.called = false;
        match self
            .current
            .frames
            .iter()
            .rposition(|frame| frame.kind == Kind::Entry)
        {
            Some(depth) => self.back_to(depth),
            None => self.current = Stack::new(),
        }
    }

    /// All places.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// What each task ran, by its stack.
    pub fn tasks(&self) -> impl Iterator<Item = (u64, Task)> + '_ {
        self.tasks
            .iter()
            .map(|(stack, task)| (*stack << STACK_BITS, *task))
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
        let here = self.current.here;
        if self.tree.is(here, function) {
            return; // A loop back to the function's start.
        }
        if self.tree.at(here).thunk {
            // Whoever called the thunk has called this function.
            let caller = self.tree.at(here).parent;
            return self.go_to_child(caller, function);
        }
        let tails = self
            .current
            .frames
            .iter()
            .rev()
            .take_while(|frame| frame.kind == Kind::Tail)
            .count();
        let first = self.current.frames.len() - tails;
        // Functions that jump to one another would pile up for ever.
        let again = (first..self.current.frames.len())
            .find(|&depth| self.tree.is(self.current.frames[depth].before, function));
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
        if !self.tree.is(self.current.here, function) {
            self.jump_to(function);
        }
    }

    /// The last call. Entry code takes its return address along as it changes stacks (`error_entry`).
    fn moved_call(&self) -> Option<usize> {
        let last = self
            .current
            .frames
            .iter()
            .rposition(|frame| frame.kind != Kind::Tail)?;
        (self.current.frames[last].kind != Kind::Entry).then_some(last)
    }

    fn push(&mut self, kind: Kind) {
        if self.current.frames.len() >= DEEPEST {
            self.current.frames.clear();
        }
        self.current.frames.push(Frame {
            kind,
            before: self.current.here,
        });
    }

    fn back_to(&mut self, depth: usize) {
        self.current.here = self.current.frames[depth].before;
        self.current.frames.truncate(depth);
    }

    fn last_call(&self) -> Option<u64> {
        self.current
            .frames
            .iter()
            .rev()
            .find_map(|frame| match frame.kind {
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
        let stack = self.others.remove(&next).unwrap_or_else(|| Stack {
            frames: Vec::new(),
            here: ROOT,
        });
        let left = core::mem::replace(&mut self.current, stack);
        self.others.insert(self.task, left);
        self.task = next;
    }

    fn go_to_child(&mut self, parent: u32, function: u32) {
        self.current.here = self.tree.child(parent, function);
        self.tree.at(self.current.here).entered += 1;
    }
}

#[cfg(test)]
mod tests;
