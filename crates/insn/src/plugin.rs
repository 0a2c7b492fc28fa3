//! The plugin itself: hooks into every block as it is translated, and what the hooks do.
//!
//! Everything runs in QEMU's one TCG thread: `-icount` knows no other, and install refuses more CPUs where QEMU's
//! plugin API does not say how many threads there are.

use crate::api::{self, Block, Counters, Id, Info, Instruction, OnAccess};
use crate::arguments::Arguments;
use crate::calls::{role, Calls, Role};
use crate::decode::{decode, Mark, Repeat};
use crate::functions::{Functions, OTHERS, UNKNOWN};
use crate::host::{complain, read_file, File};
use crate::layout::{repeat, RepeatCounter, Used, ALL, ENTERED, FLOWS, LENGTH, MOST_FUNCTIONS, PAGES};
use crate::output::{self, Names};
use crate::pages::Pages;
use crate::plan::{plan, Action, Line, Pending};
use crate::region::{Closed, Regions};
use crate::repeats::Repeats;
use crate::symbols::{Symbols, KERNEL};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::UnsafeCell;
use core::ffi::{c_char, c_int, c_uint, c_void, CStr};

struct Plugin {
    arguments: Arguments,
    out: File,
    counters: Counters,
    functions: Functions,
    pages: Pages,
    repeats: Repeats,
    regions: Regions,
    calls: Option<Calls>,
    /// Calls and returns that were dealt with.
    flows: u64,
    /// The block under translation; kept to spare an allocation a block.
    lines: Vec<Line>,
}

/// Bits of an address within its page.
const PAGE: u32 = 12;

/// Bytes of the longest instruction.
const LONGEST: u64 = 15;

/// The one instance; see the module's comment.
struct Instance(UnsafeCell<Option<Plugin>>);

// SAFETY: only ever touched by the thread that starts QEMU, before the TCG thread runs, and by that one.
unsafe impl Sync for Instance {}

static INSTANCE: Instance = Instance(UnsafeCell::new(None));

fn with_plugin(act: impl FnOnce(&mut Plugin)) {
    // SAFETY: one thread (see Instance), and no hook runs inside another.
    if let Some(plugin) = unsafe { &mut *INSTANCE.0.get() } {
        act(plugin);
    }
}

/// QEMU calls this once, as it loads the plugin. 0 is success; anything else ends QEMU.
///
/// # Safety
/// `info` and `argv` are QEMU's, `argv` has `argc` strings.
#[no_mangle]
pub unsafe extern "C" fn qemu_plugin_install(
    id: Id,
    info: *const Info,
    argc: c_int,
    argv: *const *const c_char,
) -> c_int {
    let count = usize::try_from(argc).unwrap_or(0);
    // SAFETY: as required of the caller; every argument is a C string.
    let arguments = (0..count).map(|index| unsafe { CStr::from_ptr(*argv.add(index)) }.to_str().unwrap_or("?"));
    // SAFETY: as required of the caller.
    let (system, target, cpus) = unsafe { ((*info).system, CStr::from_ptr((*info).target), (*info).cpus[1]) };
    let made = match (system, target.to_bytes()) {
        (true, b"x86_64") => Arguments::read(arguments).and_then(|arguments| Plugin::new(arguments, cpus)),
        _ => Err("only whole x86_64 machines (qemu-system-x86_64) can be counted".into()),
    };
    match made {
        Ok(plugin) => {
            // SAFETY: nothing of the guest runs yet.
            unsafe { *INSTANCE.0.get() = Some(plugin) };
            api::start(id);
            0
        }
        Err(problem) => {
            complain(&problem);
            1
        }
    }
}

impl Plugin {
    fn new(arguments: Arguments, cpus: c_int) -> Result<Self, String> {
        if cpus > 1 && api::API == 1 {
            return Err("more than one CPU cannot be counted with this QEMU (plugin API 1)".into());
        }
        // QEMU 10.0 takes a constant for the CPU's number under -icount, and computes in place (gen_plugin_u64_ptr):
        // with a second CPU its own constants change under it, and it crashes.
        let inline = cpus <= 1 && !arguments.callbacks;
        let text = read_symbols(&arguments.symbols)?;
        let symbols = Symbols::read(text.leak());
        if symbols.is_empty() && !arguments.symbols.is_empty() {
            return Err(alloc::format!("symbols={}: no kernel function with an address in it", arguments.symbols));
        }
        let out = File::create(&arguments.out).ok_or_else(|| alloc::format!("cannot write out={}", arguments.out))?;
        out.write(output::header(api::API, symbols.len(), inline).as_bytes());
        Ok(Self {
            out,
            counters: Counters::new(LENGTH, inline),
            functions: Functions::new(symbols, MOST_FUNCTIONS),
            pages: Pages::default(),
            repeats: Repeats::default(),
            regions: Regions::default(),
            calls: arguments.calls.then(Calls::default),
            flows: 0,
            lines: Vec::new(),
            arguments,
        })
    }

    fn used(&self) -> Used {
        Used { functions: self.functions.len(), pages: self.pages.len(), repeats: self.repeats.len() }
    }

    fn values(&self) -> &'static mut [u64] {
        // SAFETY: LENGTH counters that live as long as QEMU; translated code, which writes to them too, is standing
        // still while a hook runs.
        unsafe { core::slice::from_raw_parts_mut(self.counters.memory(), LENGTH) }
    }

    fn write(&self, closed: &Closed) {
        let names = Names { functions: &self.functions, pages: &self.pages, repeats: &self.repeats, calls: self.calls.as_ref() };
        let line = output::region(closed, self.used(), &names, self.arguments.vector);
        if !self.out.write(line.as_bytes()) {
            complain(&alloc::format!("out={}: the disk is full, or the file is gone", self.arguments.out));
        }
    }

    fn line(&mut self, instruction: &Instruction) -> (Line, u64, usize) {
        let mut buffer = [0; 16];
        let bytes = instruction.bytes(&mut buffer);
        let (address, length, decoded) = (instruction.address(), bytes.len(), decode(bytes));
        let kernel = address >= KERNEL;
        let (function, first) = if kernel {
            let found = self.functions.find(address);
            let known = found.number != UNKNOWN && found.number != OTHERS;
            (found.number, known && found.whole && found.start == address)
        } else {
            ((PAGES + self.pages.find(address, instruction.page())) as u32, false)
        };
        (Line { function, kernel, first, in_page: false, decoded }, address, length)
    }

    fn translate(&mut self, block: &Block) {
        let mut lines = core::mem::take(&mut self.lines);
        lines.clear();
        let (mut start, mut address, mut length) = (0, 0, 0);
        for index in 0..block.len() {
            let instruction = block.instruction(index);
            let (mut line, at, long) = self.line(&instruction);
            if index == 0 {
                start = at;
                if self.repeats.may_precede(at, instruction.page()) {
                    block.on_execution(after_repeat, at as *mut c_void);
                }
            }
            (address, length) = (at, long);
            line.in_page = (at + long as u64) >> PAGE == start >> PAGE;
            lines.push(line);
        }
        // QEMU ends a block before an instruction that crosses into the next page. Before 8.1 it shows that one to us
        // all the same, cut off somewhere, and takes out whatever is hooked to it. So the last instruction gets its
        // own hooks only, where it might cross.
        let cut = lines.len() > 1 && (address + LONGEST - 1) >> PAGE != start >> PAGE;
        let (most, rest) = lines.split_at(lines.len() - usize::from(cut));
        for (part, offset) in [(most, 0), (rest, most.len())] {
            plan(part, self.calls.is_some(), &mut |index, action| {
                let instruction = block.instruction(offset + index);
                match action {
                    Action::Repeat(kind) => self.hook_repeat(&instruction, address, length, part[index], kind),
                    other => self.hook(&instruction, part[index], other),
                }
            });
        }
        self.lines = lines;
    }

    fn hook(&mut self, instruction: &Instruction, line: Line, action: Action) {
        match action {
            Action::Add(pending) => self.add(pending, &mut |counter, count| {
                self.counters.on_execution(instruction, counter, count);
            }),
            Action::AddAfterAccess(pending) => self.add(pending, &mut |counter, count| {
                self.counters.on_access(instruction, counter, count);
            }),
            Action::Mark(mark, pending) => instruction.on_execution(at_mark, kept((mark, pending))),
            Action::Enter(pending) => {
                self.counters.on_execution(instruction, ENTERED + line.function as usize, 1);
                if self.calls.is_some() {
                    let role = role(self.functions.name(line.function).0);
                    instruction.on_execution(at_enter, kept((line.function, role, pending)));
                }
            }
            Action::Call => self.hook_flow(instruction, at_call, line.function),
            Action::Return => self.hook_flow(instruction, at_return, line.function),
            Action::Leave(pending) => instruction.on_execution(at_leave, kept(pending)),
            Action::Repeat(_) => {}
        }
    }

    fn add(&self, Pending { function, count }: Pending, register: &mut dyn FnMut(usize, u64)) {
        register(function as usize, count.into());
        if self.calls.is_some() {
            register(ALL, count.into());
        }
    }

    /// The stack pointer is where the instruction stores or loads. That it has started is counted apart: before
    /// QEMU 8.0 such a hook is also called for what other instructions access later on.
    fn hook_flow(&self, instruction: &Instruction, hook: OnAccess, function: u32) {
        self.counters.on_execution(instruction, FLOWS, 1);
        instruction.on_access(hook, function as usize as *mut c_void);
    }

    /// Whether a call or return has started that is not dealt with yet.
    fn flow_is_new(&mut self) -> bool {
        let flows = self.values()[FLOWS];
        core::mem::replace(&mut self.flows, flows) != flows
    }

    /// Adds what ran before a hook, and is not added yet.
    fn catch_up(&mut self, pending: Pending) -> &'static mut [u64] {
        let values = self.values();
        values[pending.function as usize] += u64::from(pending.count);
        values[ALL] += u64::from(pending.count);
        values
    }

    /// A repeated instruction is the last of its block: `address` and `length` are those of the block's last.
    fn hook_repeat(&mut self, instruction: &Instruction, address: u64, length: usize, line: Line, kind: Repeat) {
        let Some(number) = self.repeats.find(address, length, line.function, kind) else {
            self.counters.on_execution(instruction, line.function as usize, 1);
            return;
        };
        self.counters.on_execution(instruction, repeat(number, RepeatCounter::Passes), 1);
        self.counters.on_access(instruction, repeat(number, RepeatCounter::Accesses), 1);
    }
}

/// Sees every block as it is translated.
pub fn translate(block: &Block) {
    with_plugin(|plugin| plugin.translate(block));
}

/// QEMU ends.
pub fn finish() {
    with_plugin(|plugin| {
        let values = plugin.values();
        if let Some(calls) = &mut plugin.calls {
            calls.charge(values[ALL]);
        }
        if let Some(closed) = plugin.regions.finish(values) {
            plugin.write(&closed);
        }
        plugin.out.write(output::end().as_bytes());
    });
}

/// Data for a hook; blocks are translated anew now and then, so that a little is lost each time.
fn kept<T>(data: T) -> *mut c_void {
    core::ptr::from_mut(Box::leak(Box::new(data))).cast()
}

extern "C" fn at_mark(_: c_uint, data: *mut c_void) {
    // SAFETY: leaked in `Plugin::hook`.
    let (mark, pending) = unsafe { *data.cast::<(Mark, Pending)>() };
    with_plugin(|plugin| {
        let values = plugin.catch_up(pending);
        if let Some(calls) = &mut plugin.calls {
            calls.charge(values[ALL]);
            if mark == Mark::Begin {
                calls.reset();
            }
        }
        if let Some(closed) = plugin.regions.mark(mark, values, plugin.used()) {
            plugin.write(&closed);
        }
    });
}

extern "C" fn at_enter(_: c_uint, data: *mut c_void) {
    // SAFETY: leaked in `Plugin::hook`.
    let (function, role, pending) = unsafe { *data.cast::<(u32, Role, Pending)>() };
    with_plugin(|plugin| {
        let now = plugin.catch_up(pending)[ALL];
        if let Some(calls) = &mut plugin.calls {
            calls.enter(function, role, now);
        }
    });
}

extern "C" fn at_leave(_: c_uint, data: *mut c_void) {
    // SAFETY: leaked in `Plugin::hook`.
    let pending = unsafe { *data.cast::<Pending>() };
    with_plugin(|plugin| {
        let now = plugin.catch_up(pending)[ALL];
        if let Some(calls) = &mut plugin.calls {
            calls.leave(now);
        }
    });
}

extern "C" fn at_call(_: c_uint, access: u32, pointer: u64, function: *mut c_void) {
    with_plugin(|plugin| {
        if api::is_store(access) && plugin.flow_is_new() {
            let now = plugin.values()[ALL];
            if let Some(calls) = &mut plugin.calls {
                calls.call(function as usize as u32, pointer, now);
            }
        }
    });
}

extern "C" fn at_return(_: c_uint, _: u32, pointer: u64, function: *mut c_void) {
    with_plugin(|plugin| {
        if plugin.flow_is_new() {
            let now = plugin.values()[ALL];
            if let Some(calls) = &mut plugin.calls {
                calls.returned(function as usize as u32, pointer, now);
            }
        }
    });
}

extern "C" fn after_repeat(_: c_uint, address: *mut c_void) {
    with_plugin(|plugin| {
        let Some(number) = plugin.repeats.before(address as u64) else { return };
        let passes = plugin.values()[repeat(number, RepeatCounter::Passes)];
        if plugin.repeats.has_run(number, passes) {
            let one = Pending { function: plugin.repeats.get(number).owner, count: 1 };
            plugin.catch_up(one)[repeat(number, RepeatCounter::Done)] += 1;
        }
    });
}

fn read_symbols(path: &str) -> Result<Vec<u8>, String> {
    if path.is_empty() {
        return Ok(Vec::new());
    }
    read_file(path).ok_or_else(|| alloc::format!("cannot read symbols={path}"))
}
