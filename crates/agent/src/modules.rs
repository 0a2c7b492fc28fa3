//! Kernel modules: plain `.ko` files, dependencies first (the host has worked that out).

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::path::Path;

use nix::errno::Errno;
use nix::kmod::{finit_module, ModuleInitFlags};
use probes::failure;
use wire::boot::{BootFailure, BootModule};
use wire::steps::{Failure, LoadModule};

/// Load them in order; returns the names of those that are there now.
pub fn load_at_boot(modules: Vec<BootModule>, failures: &mut Vec<BootFailure>) -> Vec<String> {
    let mut loaded = Vec::new();
    for module in modules.into_iter().map(LoadModule::from) {
        match load(&module) {
            Ok(()) => loaded.push(name(&module.path)),
            Err(failure) => {
                let what = format!("module {}", module.path);
                failures.push(BootFailure { what, failure });
            }
        }
    }
    loaded
}

/// Load one; a module that is loaded already is no error.
pub fn load(module: &LoadModule) -> Result<(), Failure> {
    let action = format!("module {}", module.path);
    let file = File::open(&module.path).map_err(|answer| failure::of(&action, answer))?;
    let parameters = CString::new(module.parameters.as_str())
        .map_err(|answer| failure::of(&action, io::Error::other(answer)))?;
    match finit_module(&file, &parameters, ModuleInitFlags::empty()) {
        Ok(()) | Err(Errno::EEXIST) => Ok(()),
        Err(errno) => Err(refusal(&action, errno)),
    }
}

/// Two of the kernel's answers mean something else here than their usual words say.
fn refusal(action: &str, errno: Errno) -> Failure {
    let mut failure = failure::of(action, errno);
    match errno {
        Errno::ENOENT => {
            failure.text += " (a symbol that no loaded module has: a dependency is missing)"
        }
        Errno::ENOEXEC => failure.text += " (no module for this kernel, or a compressed one)",
        _ => {}
    }
    failure
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
    fn a_missing_dependency_is_not_called_a_missing_file() {
        let failure = refusal("module /m.ko", Errno::ENOENT);
        assert_eq!((failure.name.as_str(), failure.errno), ("ENOENT", 2));
        assert!(failure.text.contains("a dependency is missing"));
    }

    #[test]
    fn a_module_is_named_as_lsmod_names_it() {
        assert_eq!(
            name("/lib/modules/6.1/kernel/crypto/crc32c-intel.ko"),
            "crc32c_intel"
        );
    }
}
