//! Every built-in workload, and what `work --list` prints about it.

use serde_json::{json, Value};

use crate::arguments::Workload;
use crate::workload::{Domain, Parameter};

include!(concat!(env!("OUT_DIR"), "/ops.rs"));

/// Every workload's description, in the fields of ktrial's `WorkloadDescription`.
pub fn list() -> Value {
    ALL.iter().map(|workload| describe(workload)).collect()
}

fn describe(workload: &Workload) -> Value {
    let mut metrics =
        vec![json!({"name": workload.metric, "unit": "instructions", "direction": "lower"})];
    metrics.extend(
        workload.also.iter().map(
            |also| json!({"name": also.name, "unit": also.unit, "direction": also.direction()}),
        ),
    );
    json!({
        "name": workload.name,
        "summary": workload.summary,
        "does": workload.does,
        "system_calls": workload.system_calls,
        "metrics": metrics,
        "parameters": workload.all_parameters().iter().map(describe_parameter).collect::<Vec<_>>(),
        "source": workload.source,
    })
}

fn describe_parameter(parameter: &Parameter) -> Value {
    let mut description = json!({"name": parameter.name, "summary": parameter.summary});
    match parameter.domain {
        Domain::Number {
            default,
            minimum,
            maximum,
        } => {
            description["default"] = json!(default);
            description["minimum"] = json!(minimum);
            description["maximum"] = json!(maximum);
        }
        Domain::Choice { default, choices } => {
            description["default"] = json!(default);
            description["choices"] = json!(choices);
        }
        Domain::Directory { default } => description["default"] = json!(default),
    }
    description
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_short() {
        let mut names: Vec<&str> = ALL.iter().map(|workload| workload.name).collect();
        assert!(names.iter().all(|name| name.len() <= 14), "{names:?}");
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn every_workload_says_what_it_does() {
        for workload in ALL {
            let texts = [
                workload.summary,
                workload.does,
                workload.metric,
                workload.source,
            ];
            assert!(
                texts.iter().all(|text| !text.is_empty()),
                "{}",
                workload.name
            );
            assert!(workload.does.ends_with('.'), "{}", workload.name);
        }
    }

    #[test]
    fn every_workload_is_in_the_list() {
        assert_eq!(list().as_array().map(Vec::len), Some(ALL.len()));
    }
}
