//! QEMU loads the plugin: its arguments are read, and its hooks registered.

use crate::arguments::Arguments;
use crate::host::complain;
use crate::plugin::{begin, finish, Plugin};
use crate::qemu::{self, Block, Id, Info};
use crate::rewound::listen;
use crate::translate::translate;
use alloc::string::String;
use core::ffi::{c_char, c_int, CStr};

struct Hooks;

impl qemu::Plugin for Hooks {
    fn translate(block: &Block) {
        translate(block);
    }

    fn finish() {
        finish();
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
    // SAFETY: as required of the caller.
    match unsafe { configured(info, argc, argv) } {
        Ok(plugin) => {
            // SAFETY: QEMU loads plugins before anything of the guest runs.
            unsafe { begin(plugin) };
            qemu::start::<Hooks>(id);
            listen();
            0
        }
        Err(problem) => {
            complain(&problem);
            1
        }
    }
}

/// # Safety
/// As `qemu_plugin_install`.
unsafe fn configured(
    info: *const Info,
    argc: c_int,
    argv: *const *const c_char,
) -> Result<Plugin, String> {
    let count = usize::try_from(argc).unwrap_or(0);
    let arguments = (0..count).map(|index| {
        // SAFETY: as required of the caller; every argument is a C string.
        let argument = unsafe { CStr::from_ptr(*argv.add(index)) };
        argument.to_str().unwrap_or("[not UTF-8]")
    });
    // SAFETY: as required of the caller.
    let info = unsafe { &*info };
    // SAFETY: a C string.
    let target = unsafe { CStr::from_ptr(info.target) };
    match (info.system, target.to_bytes()) {
        (true, b"x86_64") => {
            Arguments::read(arguments).and_then(|read| Plugin::new(read, info.cpus[1]))
        }
        _ => Err("only whole x86_64 machines (qemu-system-x86_64) can be counted".into()),
    }
}
