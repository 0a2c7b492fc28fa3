//! Kernel modules: plain `.ko` files, dependencies first (the host has worked that out).

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::path::Path;

use nix::errno::Errno;
use nix::kmod::{finit_module, ModuleInitFlags};
use wire::boot::{BootFailure, BootModule};
use wire::steps::LoadModule;

use crate::failure;

/// Load them in order; returns the names of those that are there now.
pub fn load_at_boot(modules: Vec<BootModule>, failures: &mut Vec<BootFailure>) -> Vec<String> {
    let mut loaded = Vec::new();
    for module in modules.into_iter().map(LoadModule::from) {
        let what = format!("module {}", module.path);
        match load(&module) {
            Ok(()) => loaded.push(name(&module.path)),
            Err(answer) => failures.push(BootFailure {
                failure: failure::of(&what, answer),
                what,
            }),
        }
    }
    loaded
}

/// Load one; a module that is loaded already is no error.
pub fn load(module: &LoadModule) -> io::Result<()> {
    let file = File::open(&module.path)?;
    let parameters = CString::new(module.parameters.as_str())?;
    match finit_module(&file, &parameters, ModuleInitFlags::empty()) {
        Err(Errno::EEXIST) => Ok(()),
        answer => Ok(answer?),
    }
}

/// The kernel's name for the module in this file: dashes are underscores.
fn name(path: &str) -> String {
    Path::new(path)
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_is_named_as_lsmod_names_it() {
        assert_eq!(
            name("/lib/modules/6.1/kernel/crypto/crc32c-intel.ko"),
            "crc32c_intel"
        );
    }
}
