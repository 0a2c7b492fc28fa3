//! Copying a file in the page cache, 4096 bytes at a time.

use crate::page_cache_copy;
use crate::arguments::Workload;
use crate::workload::{DIRECTORY};

pub const WORKLOAD: Workload = Workload {
    name: "copy-4096",
    summary: "copy a file within the page cache, 4096 bytes at a time",
    does: "One operation reads 4 KiB from one file and writes them to the same place in another. All pages of \
           both files are in the page cache (8000 blocks, as in UnixBench). A short read or write is an \
           error, and in the end the files are compared.",
    system_calls: &["read", "write"],
    metric: "4 KiB copied",
    also: &[],
    parameters: &[page_cache_copy::blocks(8000), DIRECTORY],
    source: "UnixBench fsdisk",
    operations: 301,
    passes: 3,
    discarded: 1,
    spreads: false,
    fixed_layout: false,
    run: |arguments, meter| page_cache_copy::run(arguments, meter, 4096),
};
