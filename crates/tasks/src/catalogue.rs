//! Every workload.

use serde_json::Value;

use crate::arguments::Workload;

include!(concat!(env!("OUT_DIR"), "/ops.rs"));

/// What `tasks --list` prints.
pub fn list() -> Value {
    ALL.iter().map(|workload| workload.described()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_workload_says_what_it_does() {
        for workload in ALL {
            let name = workload.name;
            assert!(workload.does.ends_with('.'), "{name}");
            assert!(
                !workload.summary.is_empty() && !workload.summary.ends_with('.'),
                "{name}"
            );
            assert!(
                !workload.metric.is_empty() && !workload.source.is_empty(),
                "{name}"
            );
            assert!(
                workload.operations > 0 && !workload.kinds.is_empty(),
                "{name}"
            );
        }
    }

    #[test]
    fn no_two_have_one_name() {
        let mut names: Vec<&str> = ALL.iter().map(|workload| workload.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ALL.len());
    }
}
