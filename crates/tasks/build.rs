//! Finds the workloads: each file in `src/ops` declares one.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let folder = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("src/ops");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut modules = String::new();
    let mut list = String::from(
        "/// Every built-in workload, sorted by file name.\npub static ALL: &[&Workload] = &[\n",
    );
    for file in rust_files(&folder)? {
        let name = file
            .file_stem()
            .and_then(|stem| stem.to_str())
            .expect("file names are ASCII")
            .to_owned();
        writeln!(
            modules,
            "#[path = {:?}]\nmod {name};",
            file.display().to_string()
        )
        .expect("memory");
        writeln!(list, "    &{name}::WORKLOAD,").expect("memory");
    }
    let generated = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it")).join("ops.rs");
    fs::write(generated, format!("{modules}\n{list}];\n"))
}

fn rust_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<_>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "rs"));
    files.sort();
    Ok(files)
}
