//! The program brings its own `_start`: no C library, no start files, some kilobytes in all.

fn main() {
    for argument in ["-nostartfiles", "-nostdlib", "-static"] {
        println!("cargo:rustc-link-arg-bins={argument}");
    }
    println!("cargo:rerun-if-changed=build.rs");
}
