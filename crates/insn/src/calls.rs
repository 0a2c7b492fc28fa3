//! Who called whom: a shadow of the guest's kernel stacks, kept from call and return instructions.
//!
//! A call stores its return address at the stack pointer, a return loads it from there: the two are matched by that
//! address, so that frames which were thrown away, retpolines and return thunks do not shift what follows. A jump to
//! the start of another function is a tail call; it ends with the return of the function that jumped. Interrupts,
//! exceptions and system calls start trees of their own. A task is told by its kernel stack (`__switch_to_asm` ends
//! with a return on another stack).
//!
//! A jump into the middle of a function is not seen as it happens. So from one event to the next, each function gets
//! what its own counter rose by: the tree has of every function what the counters have.

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

/// Where a jump leads.
enum Landing {
    /// To a function that has jumped here: the frame that it left.
    Again(usize),
    /// To a function that this place calls, or jumps to.
    Below(u32),
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

/// What has run so far.
#[derive(Clone, Copy, Debug)]
pub struct Counted<'a> {
    /// Instructions of programs.
    pub program: u64,
    /// Instructions of the kernel: the sum of `functions`.
    pub kernel: u64,
    /// Instructions of each function, by its number.
    pub functions: &'a [u64],
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
    /// What was counted, and is in the tree: of the kernel, of programs, of each function.
    kernel: u64,
    program: u64,
    functions: Vec<u64>,
    /// Functions that the CPU jumps into.
    stubs: Vec<u32>,
    /// Functions that were jumped into: those of the last time come first.
    jumped_into: Vec<u32>,
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
            kernel: 0,
            program: 0,
            functions: Vec::new(),
            stubs: Vec::new(),
            jumped_into: Vec::new(),
            unmatched: 0,
        }
    }
}

impl Calls {
    /// What ran since the last time belongs to where the guest is, as far as its function has run, and to functions that
    /// were jumped into.
    pub fn charge(&mut self, now: Counted<'_>) {
        let program = now.program - core::mem::replace(&mut self.program, now.program);
        let kernel = now.kernel - core::mem::replace(&mut self.kernel, now.kernel);
        let task = self.tasks.entry(self.task).or_default();
        task.program += program;
        task.kernel += kernel;
        self.tree.at(PROGRAM).own += program;
        if kernel == 0 {
            return;
        }
        if self.functions.len() < now.functions.len() {
            self.functions.resize(now.functions.len(), 0);
        }
        let here = self.current.here;
        let own = if here > PROGRAM {
            self.rise(self.tree.at_rest(here).function, now)
        } else {
            0
        };
        self.tree.at(here).own += own;
        if own < kernel {
            self.charge_jumps(kernel - own, now);
        }
    }

    /// `function` is code that the CPU jumps into as an interrupt comes.
    pub fn are_stubs(&mut self, function: u32) {
        if !self.stubs.contains(&function) {
            self.stubs.push(function);
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

    /// The guest is another one, of which nothing is known; its functions have the same numbers, and the counters go
    /// on from what they are `now`.
    pub fn begin_anew(&mut self, now: Counted<'_>) {
        *self = Self {
            kernel: now.kernel,
            program: now.program,
            functions: now.functions.to_vec(),
            stubs: core::mem::take(&mut self.stubs),
            ..Self::default()
        };
    }

    /// A function's first instruction is about to run.
    pub fn enter(&mut self, function: u32, role: Role, now: Counted<'_>) {
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
        self.tree.at(self.current.here).entered += 1;
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
    pub fn call(&mut self, function: u32, pointer: u64, now: Counted<'_>) {
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
    pub fn returned(&mut self, function: u32, pointer: u64, now: Counted<'_>) {
        self.called = false;
        self.be_in(function, now);
        // On its way out, on the next task's stack already, `__switch_to` calls others (`save_fpregs_to_fpstate`).
        let mut call = self.call_at(pointer);
        let switched = call.is_none() && core::mem::take(&mut self.switching);
        if switched && pointer >> STACK_BITS != self.task {
            self.switch_to(pointer);
            call = self.call_at(pointer);
        }
        match call.or_else(|| self.moved_call()) {
            Some(depth) => self.back_to(depth),
            None => self.unmatched += 1,
        }
    }

    /// An `iret` or `sysret` is about to run; it is counted already.
    pub fn leave(&mut self, now: Counted<'_>) {
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

    /// What `function` ran since the last time.
    fn rise(&mut self, function: u32, now: Counted<'_>) -> u64 {
        let counted = now.functions[function as usize];
        counted - core::mem::replace(&mut self.functions[function as usize], counted)
    }

    /// `ran` instructions are of other functions than the one where the guest is thought to be.
    fn charge_jumps(&mut self, ran: u64, now: Counted<'_>) {
        let mut left = ran;
        // Mostly it is one of a few that are jumped into again and again.
        for at in 0..self.jumped_into.len() {
            let function = self.jumped_into[at];
            left -= self.charge_jump(function, now);
            if left == 0 {
                self.jumped_into[..=at].rotate_right(1);
                return;
            }
        }
        for function in 0..now.functions.len() as u32 {
            let own = self.charge_jump(function, now);
            if own > 0 {
                self.jumped_into.push(function);
                left -= own;
            }
            if left == 0 {
                return;
            }
        }
    }

    fn charge_jump(&mut self, function: u32, now: Counted<'_>) -> u64 {
        let own = self.rise(function, now);
        if own > 0 {
            let place = match self.landing(function) {
                Landing::Again(depth) => self.current.frames[depth].before,
                Landing::Below(parent) => self.tree.child(parent, function),
            };
            self.tree.at(place).own += own;
        }
        own
    }

    /// Where a jump to `function`, which is not where the guest is, leads in the tree.
    fn landing(&self, function: u32) -> Landing {
        let here = self.current.here;
        if here == PROGRAM || self.stubs.contains(&function) {
            return Landing::Below(ROOT);
        }
        let place = self.tree.at_rest(here);
        if place.thunk {
            // Whoever called the thunk has called this function.
            return Landing::Below(place.parent);
        }
        let frames = &self.current.frames;
        let tails = frames
            .iter()
            .rev()
            .take_while(|frame| frame.kind == Kind::Tail);
        let first = frames.len() - tails.count();
        // Functions that jump to one another would pile up for ever.
        (first..frames.len())
            .find(|&depth| self.tree.is(frames[depth].before, function))
            .map_or(Landing::Below(here), Landing::Again)
    }

    fn jump_to(&mut self, function: u32) {
        if self.tree.is(self.current.here, function) {
            return; // A loop back to the function's start.
        }
        match self.landing(function) {
            Landing::Again(depth) => self.back_to(depth),
            Landing::Below(parent) => {
                if parent == self.current.here {
                    self.push(Kind::Tail);
                }
                self.go_to_child(parent, function);
            }
        }
    }

    /// The guest is in `function`, whatever was thought.
    fn be_in(&mut self, function: u32, now: Counted<'_>) {
        self.charge(now);
        if !self.tree.is(self.current.here, function) {
            self.jump_to(function);
        }
    }

    /// The call whose return address is at `pointer`.
    fn call_at(&self, pointer: u64) -> Option<usize> {
        let matching = |frame: &Frame| frame.kind == Kind::Call { pointer };
        self.current.frames.iter().rposition(matching)
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
    }
}

#[cfg(test)]
mod tests;
