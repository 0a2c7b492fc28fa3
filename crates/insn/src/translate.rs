//! What happens as QEMU translates a block: hooks are put where `plan` says.

use crate::decode::{decode, Repeat};
use crate::functions::{OTHERS, UNKNOWN};
use crate::hooks::{
    after_repeat, at_access, at_call, at_enter, at_fetch, at_leave, at_mark, at_return, kept,
};
use crate::layout::{repeat, RepeatCounter, ALL, ENTERED, FLOWS, PAGES};
use crate::plan::{plan, Action, Line, Pending};
use crate::plugin::{with_plugin, Plugin};
use crate::qemu::{Block, Instruction, OnAccess};
use crate::roles::role;
use crate::symbols::KERNEL;
use core::ffi::c_void;
use core::ops::Range;

/// Bits of an address within its page.
const PAGE: u32 = 12;

/// Where the kernel maps its image: from physical address 0 on, without KASLR (`__START_KERNEL_map`).
const IMAGE: Range<u64> = 0xffff_ffff_8000_0000..0xffff_ffff_a000_0000;

/// Bytes of the longest instruction.
const LONGEST: u64 = 15;

/// Where an instruction is.
#[derive(Clone, Copy, Default)]
struct Place {
    address: u64,
    length: u64,
}

impl Place {
    fn end(self) -> u64 {
        self.address + self.length
    }
}

/// Sees every block as it is translated.
pub fn translate(block: &Block) {
    with_plugin(|plugin| plugin.translate(block));
}

impl Plugin {
    fn translate(&mut self, block: &Block) {
        let mut lines = core::mem::take(&mut self.lines);
        lines.clear();
        let start = block.instruction(0).address();
        let mut last = Place::default();
        let mut fetched = None;
        self.ran = true;
        self.pages.look_again();
        for index in 0..block.count() {
            let instruction = block.instruction(index);
            let (mut line, place) = self.line(&instruction);
            line.in_page = place.end() >> PAGE == start >> PAGE;
            self.hook_caches(&instruction, line.function, place, &mut fetched);
            lines.push(line);
            last = place;
        }
        if self.repeats.may_precede(start, block.instruction(0).page()) {
            block.on_execution(after_repeat, start as *mut c_void);
        }
        // QEMU ends a block before an instruction that crosses into the next page. Before 8.1 it shows
        // that one to us all the same, cut off somewhere, and takes out whatever is hooked to it. So the
        // last instruction gets its own hooks only, where it might cross.
        let cut = lines.len() > 1 && (last.address + LONGEST - 1) >> PAGE != start >> PAGE;
        let (most, rest) = lines.split_at(lines.len() - usize::from(cut));
        for (part, offset) in [(most, 0), (rest, most.len())] {
            plan(part, self.calls.is_some(), &mut |index, action| {
                let instruction = block.instruction(offset + index);
                self.hook(&instruction, last, part[index], action);
            });
        }
        self.lines = lines;
    }

    fn line(&mut self, instruction: &Instruction) -> (Line, Place) {
        let mut buffer = [0; 16];
        let bytes = instruction.bytes(&mut buffer);
        let decoded = decode(bytes);
        let length = bytes.len() as u64;
        let address = instruction.address();
        let kernel = address >= KERNEL;
        let (function, first) = if kernel {
            let found = self.functions.find(address);
            let known = found.number != UNKNOWN && found.number != OTHERS;
            (found.number, known && found.whole && found.start == address)
        } else {
            let page = self.pages.find(address, instruction.page());
            ((PAGES + page) as u32, false)
        };
        let in_page = false;
        let line = Line {
            function,
            kernel,
            first,
            in_page,
            decoded,
        };
        (line, Place { address, length })
    }

    /// `last` is where the block's last instruction is: a repeated instruction always is the last.
    fn hook(&mut self, instruction: &Instruction, last: Place, line: Line, action: Action) {
        let counters = &self.counters;
        match action {
            Action::Add(pending) => self.add(pending, &mut |counter, count| {
                counters.on_execution(instruction, counter, count);
            }),
            Action::AddAfterAccess(pending) => self.add(pending, &mut |counter, count| {
                counters.on_access(instruction, counter, count);
            }),
            Action::Mark(mark, pending) => instruction.on_execution(at_mark, kept((mark, pending))),
            Action::Enter(pending) => {
                counters.on_execution(instruction, ENTERED + line.function as usize, 1);
                if self.calls.is_some() {
                    let role = role(self.functions.name(line.function).0);
                    instruction.on_execution(at_enter, kept((line.function, role, pending)));
                }
            }
            Action::Call => self.hook_flow(instruction, at_call, line.function),
            Action::Return => self.hook_flow(instruction, at_return, line.function),
            Action::Leave(pending) => instruction.on_execution(at_leave, kept(pending)),
            Action::Repeat(kind) => self.hook_repeat(instruction, last, line.function, kind),
        }
    }

    fn add(&self, pending: Pending, register: &mut dyn FnMut(usize, u64)) {
        let Pending { function, count } = pending;
        register(function as usize, count.into());
        if self.calls.is_some() {
            register(ALL, count.into());
        }
    }

    /// The stack pointer is where the instruction stores or loads. That it has started is counted apart:
    /// before QEMU 8.0 such a hook is also called for what other instructions access later on.
    fn hook_flow(&self, instruction: &Instruction, hook: OnAccess, function: u32) {
        self.counters.on_execution(instruction, FLOWS, 1);
        instruction.on_access(hook, function as usize as *mut c_void);
    }

    fn hook_repeat(&mut self, instruction: &Instruction, place: Place, owner: u32, kind: Repeat) {
        let found = self.repeats.find(place.address, place.end(), owner, kind);
        let Some(number) = found else {
            let each = Pending {
                function: owner,
                count: 1,
            };
            self.add(each, &mut |counter, count| {
                self.counters.on_execution(instruction, counter, count);
            });
            return;
        };
        let passes = repeat(number, RepeatCounter::Passes);
        self.counters.on_execution(instruction, passes, 1);
        let accesses = repeat(number, RepeatCounter::Accesses);
        self.counters.on_access(instruction, accesses, 1);
    }

    /// `fetched`: owner and line of the block's instruction before; the same line is not fetched again.
    fn hook_caches(
        &mut self,
        instruction: &Instruction,
        owner: u32,
        place: Place,
        fetched: &mut Option<(u32, u64)>,
    ) {
        let Some(caches) = &self.caches else { return };
        instruction.on_access(at_access, owner as usize as *mut c_void);
        let Some(page) = instruction.page() else {
            return;
        };
        let page = page.as_ptr() as usize;
        if IMAGE.contains(&place.address) {
            self.memory = Some(page.wrapping_sub((place.address - IMAGE.start) as usize & !0xfff));
        }
        let Some(memory) = self.memory else { return };
        let physical = page.wrapping_sub(memory) as u64 + (place.address & 0xfff);
        let last = (owner, caches.code_line(physical + place.length - 1));
        if fetched.replace(last) != Some(last) {
            instruction.on_execution(at_fetch, kept((owner as usize, physical, place.length)));
        }
    }
}
