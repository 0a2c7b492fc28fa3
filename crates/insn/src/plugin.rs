//! The plugin itself: what it knows, and its end.
//!
//! Everything runs in QEMU's one TCG thread: `-icount` knows no other.

use crate::arguments::Arguments;
use crate::block::{KeptBlock, Site};
use crate::caches::Caches;
use crate::calls::{Calls, Counted};
use crate::counters::Counters;
use crate::functions::Functions;
use crate::guest::Guest;
use crate::host::{give_up, read_file, File};
use crate::kept::Kept;
use crate::layout::{sum_of, Used, KERNEL, MOST_FUNCTIONS, PROGRAMS, REPEATS};
use crate::machine_model::MachineModel;
use crate::output::{self, Names};
use crate::page_tables::{Memory, Unknown};
use crate::pages::Pages;
use crate::plan::{Line, Pending};
use crate::qemu;
use crate::region::{Closed, Event, Regions};
use crate::repeats::Repeats;
use crate::symbols::Symbols;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::UnsafeCell;
use core::ffi::c_int;

/// All that the hooks share.
pub struct Plugin {
    pub arguments: Arguments,
    pub counters: Counters,
    pub functions: Functions,
    pub pages: Pages,
    pub repeats: Repeats,
    pub regions: Regions,
    pub calls: Option<Calls>,
    /// Calls and returns that were dealt with.
    pub flows: u64,
    pub caches: Option<Caches>,
    pub model: Option<MachineModel>,
    /// What the hooks of the machine model are given.
    pub blocks: Kept<KeptBlock>,
    pub sites: Kept<Site>,
    /// Where QEMU keeps the guest's physical address 0; None until code of the kernel image was seen.
    pub memory: Option<usize>,
    /// Trials that this process has counted before (`rewound`).
    pub trials: usize,
    /// The guest has run. Without a CPU that ran, QEMU has no counters to read.
    pub ran: bool,
    /// The block under translation; kept to spare an allocation a block.
    pub lines: Vec<Line>,
    out: File,
}

/// The one instance.
struct Instance(UnsafeCell<Option<Plugin>>);

// SAFETY: only ever touched by the thread that starts QEMU, before the TCG thread runs, and by that one.
unsafe impl Sync for Instance {}

static INSTANCE: Instance = Instance(UnsafeCell::new(None));

/// What every hook does. Hooks that come before the start or after a failed one do nothing.
pub fn with_plugin(act: impl FnOnce(&mut Plugin)) {
    // SAFETY: one thread (see Instance), and no hook runs inside another.
    if let Some(plugin) = unsafe { &mut *INSTANCE.0.get() } {
        act(plugin);
    }
}

/// What the hooks of the machine model do.
pub fn with_model(act: impl FnOnce(&mut MachineModel)) {
    with_plugin(|plugin| {
        if let Some(model) = &mut plugin.model {
            act(model);
        }
    });
}

/// From here on the hooks do something.
///
/// # Safety
/// Nothing of the guest runs yet.
pub unsafe fn begin(plugin: Plugin) {
    // SAFETY: as required of the caller, and no hook runs before the guest does.
    unsafe { *INSTANCE.0.get() = Some(plugin) };
}

/// QEMU ends.
pub fn finish() {
    with_plugin(|plugin| {
        if plugin.ran {
            plugin.finish_region();
        }
        plugin.out.write(output::end().as_bytes());
    });
}

impl Plugin {
    /// A plugin that has counted nothing yet. `cpus`: how many the guest may have. Says what cannot be counted.
    pub fn new(arguments: Arguments, cpus: c_int) -> Result<Self, String> {
        if cpus > 1 && qemu::VERSION == 1 {
            let problem = "more than one CPU cannot be counted with this QEMU (plugin API 1)";
            return Err(problem.into());
        }
        if cpus > 1 && (arguments.calls || arguments.caches.is_some() || arguments.model.is_some())
        {
            return Err("calls, caches and cycles are followed with one CPU only".into());
        }
        // QEMU 10.0 takes a constant for the CPU's number under -icount, and computes in place
        // (`gen_plugin_u64_ptr`): with a second CPU its constants change under it, and it crashes.
        let inline = cpus <= 1 && !arguments.callbacks;
        let symbols = read_symbols(&arguments.symbols)?;
        let out = File::create(&arguments.out)
            .ok_or_else(|| alloc::format!("cannot write out={}", arguments.out))?;
        if !out.write(output::header(qemu::VERSION, symbols.len(), inline).as_bytes()) {
            return Err(alloc::format!("cannot write out={}", arguments.out));
        }
        Ok(Self {
            counters: Counters::new(inline),
            functions: Functions::new(symbols, MOST_FUNCTIONS),
            pages: Pages::default(),
            repeats: Repeats::default(),
            regions: Regions::default(),
            calls: arguments.calls.then(Calls::default),
            flows: 0,
            caches: arguments.caches.map(|shapes| Caches::new(shapes, REPEATS)),
            model: arguments
                .model
                .as_ref()
                .map(|machine| MachineModel::new(machine, REPEATS, guest_memory())),
            blocks: Kept::default(),
            sites: Kept::default(),
            memory: None,
            trials: 0,
            ran: false,
            lines: Vec::new(),
            arguments,
            out,
        })
    }

    /// How many counters are in use.
    pub fn used(&self) -> Used {
        Used {
            functions: self.functions.count(),
            pages: self.pages.count(),
            repeats: self.repeats.count(),
        }
    }

    /// What was modelled so far beside instructions; 0 without a model.
    pub fn modelled(&self) -> u64 {
        self.model.as_ref().map_or(0, MachineModel::total)
    }

    /// Adds what ran before a hook and is not added yet.
    pub fn catch_up(&mut self, pending: Pending) {
        let Pending { function, count } = pending;
        let owner = function as usize;
        self.counters.add_now(owner, count.into());
        self.counters.add_now(sum_of(owner), count.into());
    }

    /// What to do where calls are followed: `act` is told what has run.
    pub fn follow(&mut self, act: impl FnOnce(&mut Calls, Counted<'_>)) {
        let Some(calls) = &mut self.calls else { return };
        let counters = self.counters.values();
        let counted = Counted {
            program: counters[PROGRAMS],
            kernel: counters[KERNEL],
            functions: &counters[..self.functions.count()],
        };
        act(calls, counted);
    }

    fn finish_region(&mut self) {
        self.follow(Calls::charge);
        let modelled = self.modelled();
        if let Some(closed) = self.regions.finish(self.counters.values(), modelled) {
            self.write(&closed);
        }
    }

    /// Writes an event's line.
    pub fn write_event(&self, event: &Event) {
        match event {
            Event::NextRun => self.write_line(&output::next_run()),
            Event::Region(closed) => self.write(closed),
            Event::RunEnd(marking) => self.write_line(&output::run_end(marking)),
        }
    }

    /// Writes a region's line.
    fn write(&self, closed: &Closed) {
        let names = Names {
            functions: &self.functions,
            pages: &self.pages,
            repeats: &self.repeats,
            calls: self.calls.as_ref(),
            caches: self.caches.as_ref(),
            model: self.model.as_ref(),
        };
        self.write_line(&output::region(
            closed,
            self.used(),
            &names,
            self.arguments.vector,
        ));
    }

    fn write_line(&self, line: &str) {
        if !self.out.write(line.as_bytes()) {
            let out = &self.arguments.out;
            give_up(&alloc::format!(
                "out={out}: the disk is full, or the file is gone"
            ));
        }
    }
}

fn guest_memory() -> Box<dyn Memory> {
    match Guest::find() {
        Some(guest) => Box::new(guest),
        None => Box::new(Unknown),
    }
}

fn read_symbols(path: &str) -> Result<Symbols<'static>, String> {
    if path.is_empty() {
        return Ok(Symbols::read(b""));
    }
    let text = read_file(path).ok_or_else(|| alloc::format!("cannot read symbols={path}"))?;
    let symbols = Symbols::read(text.leak());
    if symbols.is_empty() {
        let problem = "no kernel function with an address in it";
        return Err(alloc::format!("symbols={path}: {problem}"));
    }
    Ok(symbols)
}
