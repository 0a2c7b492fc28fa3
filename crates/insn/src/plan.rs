//! Where in a translation block the counting goes.
//!
//! A block can be left before its end: by a fault, and, under `-icount`, by a device access that QEMU does over again
//! in a block of its own (`cpu_io_recompile`; there it allows hooks on memory accesses only). Adding the block's
//! length at its start would count what never ran. So the count so far is added whenever an instruction comes up that
//! can leave the block; it is counted itself when its successor starts. The last instruction has no successor: it is
//! counted after its memory access where it makes exactly one and goes on within its page, else as it starts.
//! (Elsewhere QEMU calls a helper to find the next block, and before 8.0 the hook then stays on: it counts whatever
//! memory access a helper makes next.)
//! In the kernel, accesses to the stack, the per-CPU area and the image do not fault and reach no device.

use crate::decode::{Decoded, Flow, Mark, Reach, Repeat};

/// One instruction of a block, with what is known of it.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    /// Number of the function that it belongs to.
    pub function: u32,
    /// In the kernel's half of the address space.
    pub kernel: bool,
    /// The first instruction of its function.
    pub first: bool,
    /// It ends on the page on which its block starts.
    pub in_page: bool,
    /// What it is.
    pub decoded: Decoded,
}

/// `count` instructions of `function` that ran and are not yet added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pending {
    /// The function's number.
    pub function: u32,
    /// How many.
    pub count: u32,
}

/// One hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Add as the instruction starts.
    Add(Pending),
    /// Add after the instruction's memory access.
    AddAfterAccess(Pending),
    /// The program's mark; `pending` is added first. Marks themselves are not counted.
    Mark(Mark, Pending),
    /// A repeated string instruction, counted apart.
    Repeat(Repeat),
    /// The function's first instruction; `pending` belongs to what ran before.
    Enter(Pending),
    /// Calls the next function.
    Call,
    /// Returns to its caller.
    Return,
    /// Leaves the kernel, or the handler of an interrupt; `pending` includes the instruction.
    Leave(Pending),
}

/// Tells `hook` what goes where: the instruction's index in the block, and the action. `flow`: report calls too.
pub fn plan(block: &[Line], flow: bool, hook: &mut dyn FnMut(usize, Action)) {
    let mut pending = Pending {
        function: block.first().map_or(0, |line| line.function),
        count: 0,
    };
    for (index, line) in block.iter().enumerate() {
        let last = index + 1 == block.len();
        if line.first && line.kernel {
            hook(
                index,
                Action::Enter(if flow {
                    take(&mut pending)
                } else {
                    Pending {
                        count: 0,
                        ..pending
                    }
                }),
            );
        }
        if line.function != pending.function {
            flush(&mut pending, index, hook);
            pending.function = line.function;
        }
        match line.decoded.flow {
            Flow::Mark(mark) if !line.kernel => hook(index, Action::Mark(mark, take(&mut pending))),
            Flow::Repeat(repeat) => {
                flush(&mut pending, index, hook);
                hook(index, Action::Repeat(repeat));
            }
            Flow::Leave if flow && line.kernel => {
                pending.count += 1;
                hook(index, Action::Leave(take(&mut pending)));
            }
            kind => {
                count(&mut pending, line, index, last, hook);
                if flow && line.kernel {
                    match kind {
                        Flow::Call => hook(index, Action::Call),
                        Flow::Return => hook(index, Action::Return),
                        _ => {}
                    }
                }
            }
        }
    }
}

fn count(
    pending: &mut Pending,
    line: &Line,
    index: usize,
    last: bool,
    hook: &mut dyn FnMut(usize, Action),
) {
    let safe = match line.decoded.reach {
        Reach::Nothing => true,
        Reach::Own => line.kernel,
        Reach::Once | Reach::Unknown => false,
    };
    if !safe && !last {
        flush(pending, index, hook);
    }
    if last
        && !safe
        && line.decoded.reach != Reach::Unknown
        && line.decoded.flow == Flow::Plain
        && line.in_page
    {
        flush(pending, index, hook);
        hook(
            index,
            Action::AddAfterAccess(Pending {
                count: 1,
                ..*pending
            }),
        );
        return;
    }
    pending.count += 1;
    if last {
        flush(pending, index, hook);
    }
}

fn take(pending: &mut Pending) -> Pending {
    let taken = *pending;
    pending.count = 0;
    taken
}

fn flush(pending: &mut Pending, index: usize, hook: &mut dyn FnMut(usize, Action)) {
    if pending.count > 0 {
        hook(index, Action::Add(take(pending)));
    }
}

#[cfg(test)]
mod tests;
