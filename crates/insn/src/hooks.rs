//! What QEMU calls while the guest runs.

use crate::block::{KeptBlock, Site};
use crate::calls::Calls;
use crate::decode::Mark;
use crate::layout::{repeat, RepeatCounter, FLOWS};
use crate::machine_model::{MachineModel, Place};
use crate::plan::Pending;
use crate::plugin::{with_model, with_plugin, Plugin};
use crate::qemu;
use crate::region::Moment;
use crate::roles::Role;
use alloc::boxed::Box;
use core::ffi::{c_uint, c_void};

/// Data for a hook. Blocks are translated anew now and then, so that a little is lost each time.
pub fn kept<T: Copy>(data: T) -> *mut c_void {
    core::ptr::from_mut(Box::leak(Box::new(data))).cast()
}

/// The program's mark; `data`: which, and what is not added yet.
pub extern "C" fn at_mark(_: c_uint, data: *mut c_void) {
    // SAFETY: made by `kept` in `Plugin::hook`.
    let (mark, pending) = unsafe { *data.cast::<(Mark, Pending)>() };
    with_plugin(|plugin| {
        plugin.catch_up(pending);
        let anew = matches!(mark, Mark::Begin | Mark::RunBegin);
        plugin.follow(|calls, counted| {
            calls.charge(counted);
            if anew {
                calls.reset();
            }
        });
        if let (Some(caches), true) = (&mut plugin.caches, anew) {
            caches.reset();
        }
        if let (Some(model), true) = (&mut plugin.model, anew) {
            model.reset();
        }
        let used = plugin.used();
        let modelled = plugin.modelled();
        let task = plugin.calls.as_ref().map_or(0, Calls::task);
        let counters = plugin.counters.values();
        let bytes = plugin.repeats.all_bytes(counters);
        let moment = Moment {
            counters,
            used,
            bytes,
            modelled,
            task,
        };
        for event in plugin.regions.mark(mark, moment).into_iter().flatten() {
            plugin.write_event(&event);
        }
    });
}

/// A function's first instruction; `data`: its number, its role, and what is not added yet.
pub extern "C" fn at_enter(_: c_uint, data: *mut c_void) {
    // SAFETY: made by `kept` in `Plugin::hook`.
    let (function, role, pending) = unsafe { *data.cast::<(u32, Role, Pending)>() };
    with_plugin(|plugin| {
        plugin.catch_up(pending);
        plugin.follow(|calls, counted| calls.enter(function, role, counted));
    });
}

/// Back from an interrupt or a system call; `data`: what is not added yet.
pub extern "C" fn at_leave(_: c_uint, data: *mut c_void) {
    // SAFETY: made by `kept` in `Plugin::hook`.
    let pending = unsafe { *data.cast::<Pending>() };
    with_plugin(|plugin| {
        plugin.catch_up(pending);
        plugin.follow(Calls::leave);
    });
}

/// A call has stored its return address; `function`: its number.
pub extern "C" fn at_call(_: c_uint, access: u32, pointer: u64, function: *mut c_void) {
    with_plugin(|plugin| {
        if qemu::is_store(access) && flow_is_new(plugin) {
            let function = function as usize as u32;
            plugin.follow(|calls, counted| calls.call(function, pointer, counted));
        }
    });
}

/// A return has loaded its return address; `function`: its number.
pub extern "C" fn at_return(_: c_uint, _: u32, pointer: u64, function: *mut c_void) {
    with_plugin(|plugin| {
        if flow_is_new(plugin) {
            let function = function as usize as u32;
            plugin.follow(|calls, counted| calls.returned(function, pointer, counted));
        }
    });
}

/// Whether a call or return has started that is not dealt with yet.
fn flow_is_new(plugin: &mut Plugin) -> bool {
    let flows = plugin.counters.values()[FLOWS];
    core::mem::replace(&mut plugin.flows, flows) != flows
}

/// Data was read or written; `owner`: the counter of whose instruction it was.
pub extern "C" fn at_access(_: c_uint, access: u32, address: u64, owner: *mut c_void) {
    with_plugin(|plugin| {
        if let (Some(caches), Some(place)) = (&mut plugin.caches, qemu::physical(access, address)) {
            caches.access(
                owner as usize,
                place,
                qemu::size(access),
                qemu::is_store(access),
            );
        }
    });
}

/// A line of code is reached; `data`: owner, physical address, length.
pub extern "C" fn at_fetch(_: c_uint, data: *mut c_void) {
    // SAFETY: made by `kept` in `Plugin::hook_caches`.
    let (owner, physical, length) = unsafe { *data.cast::<(usize, u64, u64)>() };
    with_plugin(|plugin| {
        if let Some(caches) = &mut plugin.caches {
            caches.fetch(owner, physical, length);
        }
    });
}

/// A block starts, of which `data` is known.
pub extern "C" fn at_block(_: c_uint, data: *mut c_void) {
    // SAFETY: made by `keep` in `Plugin::hook_model`.
    let block = unsafe { &*data.cast::<KeptBlock>() };
    with_model(|model| model.block(block));
}

/// Data was used, at most `LONGEST` bytes at a time; `data`: by what.
pub extern "C" fn at_modelled_access<const LONGEST: u64>(
    _: c_uint,
    access: u32,
    address: u64,
    data: *mut c_void,
) {
    with_model(|model| {
        if !model.ignores(address, LONGEST) {
            look_up(model, access, address, data);
        }
    });
}

#[inline(never)]
fn look_up(model: &mut MachineModel, access: u32, address: u64, data: *mut c_void) {
    // SAFETY: made by `keep` in `Plugin::hook_access`.
    used(model, || unsafe { *data.cast::<Site>() }, access, address);
}

fn used(model: &mut MachineModel, site: impl FnOnce() -> Site, access: u32, address: u64) {
    let size = || qemu::size(access);
    let store = || qemu::is_store(access);
    let place = || qemu::physical(access, address).map_or(Place::Device, Place::Memory);
    model.access(site, address, size, store, place);
}

/// A block that is one repeated string instruction, of which `data` is known, has used data.
pub extern "C" fn at_string_access(_: c_uint, access: u32, address: u64, data: *mut c_void) {
    // SAFETY: made by `keep` in `Plugin::hook_model`.
    let block = unsafe { &*data.cast::<KeptBlock>() };
    with_model(|model| {
        if !(model.goes_on(block) && model.ignores(address, block.width())) {
            look_up_string(model, block, access, address);
        }
    });
}

#[inline(never)]
fn look_up_string(model: &mut MachineModel, block: &'static KeptBlock, access: u32, address: u64) {
    model.string_block(block);
    if !model.goes_in_turn(address, block.width()) {
        used(model, || block.last_site(), access, address);
    }
}

/// The block at `address` starts, which may come after a repeated string instruction.
pub extern "C" fn after_repeat(_: c_uint, address: *mut c_void) {
    with_plugin(|plugin| {
        let Some(number) = plugin.repeats.before(address as u64) else {
            return;
        };
        let passes = plugin.counters.values()[repeat(number, RepeatCounter::Passes)];
        if plugin.repeats.has_run(number, passes) {
            let done = repeat(number, RepeatCounter::Done);
            plugin.counters.add_now(done, 1);
            let function = plugin.repeats.get(number).owner;
            plugin.catch_up(Pending { function, count: 1 });
            if let Some(model) = &mut plugin.model {
                model.string_done(function as usize);
            }
        }
    });
}
