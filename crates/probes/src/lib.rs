//! What is read around a program's run, in a guest (`agent`) and on this machine (`launch`): files of counters before
//! and after it, files sampled while it runs, how it ended and what it used.

pub mod counters;
pub mod failure;
pub mod rusage;
pub mod sampler;
pub mod whole;
