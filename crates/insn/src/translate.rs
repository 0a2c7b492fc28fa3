//! What happens as QEMU translates a block: hooks are put where `plan` says.

use crate::block::{self, Change, Site};
use crate::decode::{decode, Flow, Reach, Repeat};
use crate::functions::{OTHERS, UNKNOWN};
use crate::hooks::{
    after_repeat, at_access, at_block, at_call, at_enter, at_fetch, at_leave, at_mark,
    at_modelled_access, at_return, at_string_access, kept,
};
use crate::kinds::{branch, class, longest_access, selected, Class};
use crate::layout::{repeat, sum_of, RepeatCounter, ENTERED, FLOWS, PAGES};
use crate::plan::{plan, Action, Line, Pending};
use crate::plugin::{with_plugin, Plugin};
use crate::qemu::{Block, Instruction, OnAccess};
use crate::roles::{role, Role};
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
        let mut cost = 0;
        let mut register = None;
        self.ran = true;
        self.pages.look_again();
        for index in 0..block.count() {
            let instruction = block.instruction(index);
            let (mut line, place) = self.line(&instruction);
            line.in_page = place.end() >> PAGE == start >> PAGE;
            self.hook_caches(&instruction, line.function, place, &mut fetched);
            cost += self.hook_access(&instruction, &line, block.count(), &mut register);
            lines.push(line);
            last = place;
        }
        self.hook_model(block, &lines, last, cost, register);
        self.look_for_stubs(lines[0]);
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

    /// The CPU jumps to them: their instructions always begin a block.
    fn look_for_stubs(&mut self, first: Line) {
        let Some(calls) = &mut self.calls else { return };
        if first.kernel && role(self.functions.name(first.function).0) == Role::Stubs {
            calls.are_stubs(first.function);
        }
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
            register(sum_of(function as usize), count.into());
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
        if self.caches.is_none() {
            return;
        }
        instruction.on_access(at_access, owner as usize as *mut c_void);
        let Some(physical) = self.physical(instruction) else {
            return;
        };
        let Some(caches) = &self.caches else { return };
        let last = (owner, caches.code_line(physical + place.length - 1));
        if fetched.replace(last) != Some(last) {
            instruction.on_execution(at_fetch, kept((owner as usize, physical, place.length)));
        }
    }

    /// Where an instruction is in the guest's memory; None before code of the kernel's image was seen.
    fn physical(&mut self, instruction: &Instruction) -> Option<u64> {
        let (page, address) = (instruction.page()?.as_ptr() as usize, instruction.address());
        if IMAGE.contains(&address) {
            self.memory = Some(page.wrapping_sub((address - IMAGE.start) as usize & !0xfff));
        }
        Some(page.wrapping_sub(self.memory?) as u64 + (address & 0xfff))
    }

    /// What an instruction's accesses cost is modelled; gives what it costs by its class. `register`: what is known of
    /// ecx.
    fn hook_access(
        &mut self,
        instruction: &Instruction,
        line: &Line,
        together: usize,
        register: &mut Option<u32>,
    ) -> u64 {
        let Some(model) = &self.model else { return 0 };
        let apart = together == 1 && repeats(core::slice::from_ref(line));
        let mut buffer = [0; 16];
        let bytes = instruction.bytes(&mut buffer);
        if line.decoded.reach != Reach::Nothing && !apart {
            let site = Site {
                owner: line.function,
                instruction: instruction.address(),
            };
            let hook = match longest_access(bytes) {
                8 => at_modelled_access::<8>,
                _ => at_modelled_access::<16>,
            };
            instruction.on_access(hook, self.sites.keep(site));
        }
        *register = selected(bytes, *register);
        model.costs().of(class(bytes, *register))
    }

    /// A block's fetch, its branch and the costs of its instructions are modelled as it starts.
    fn hook_model(
        &mut self,
        block: &Block,
        lines: &[Line],
        last: Place,
        cost: u64,
        register: Option<u32>,
    ) {
        if self.model.is_none() {
            return;
        }
        let (first, ending) = (lines[0], block.instruction(lines.len() - 1));
        let mut buffer = [0; 16];
        let bytes = ending.bytes(&mut buffer);
        let address = block.instruction(0).address();
        let entered = first.first && first.kernel;
        let modelled = block::Block {
            owner: first.function,
            address,
            physical: self.physical(&block.instruction(0)),
            length: last.end() - address,
            width: width(lines),
            cost,
            branch: branch(bytes, last.end()),
            branch_at: last.address,
            change: change(class(bytes, register)),
            system_call: class(bytes, register) == Class::SystemCall,
            entry: entered && role(self.functions.name(first.function).0) == Role::Entry,
        };
        if repeats(lines) {
            // It starts anew for each of its passes.
            ending.on_access(at_string_access, self.blocks.keep(modelled.kept()));
        } else {
            block.on_execution(at_block, self.blocks.keep(modelled.kept()));
        }
    }
}

/// Whether a block is one repeated string instruction.
fn repeats(lines: &[Line]) -> bool {
    matches!(lines, [only] if matches!(only.decoded.flow, Flow::Repeat(_)))
}

/// Bytes of each access of a block that is one repeated string instruction.
fn width(lines: &[Line]) -> u8 {
    match lines[0].decoded.flow {
        Flow::Repeat(repeat) => repeat.width,
        _ => 0,
    }
}

fn change(class: Class) -> Change {
    match class {
        Class::InvalidatePage => Change::Page,
        Class::SwitchTables => Change::Tables,
        Class::ControlRegister => Change::All,
        Class::PredictionBarrier => Change::Targets,
        Class::FlushData => Change::Data,
        _ => Change::None,
    }
}
