//! What a run measured, as JSON in the form of ktrial's built-in workloads.

use serde_json::{json, Value};

use crate::arguments::Arguments;
use crate::crew::Crew;
use crate::failure::Failure;

/// Statistics over the passes; `done` is how many operations all tasks did in them.
pub fn report(arguments: &Arguments, crew: &Crew, checks: u64) -> Result<Value, Failure> {
    let passes = crew.counted()?;
    let workload = arguments.workload;
    let times: Vec<f64> = passes.iter().map(|pass| pass.time).collect();
    let rates: Vec<f64> = passes.iter().map(|pass| pass.throughput).collect();
    let mut metrics = vec![
        metric(workload.metric, arguments.clock.unit(), "lower", &times),
        metric("throughput", "ops/s", "higher", &rates),
    ];
    for (name, values) in &crew.also {
        let declared = workload.also.iter().find(|(known, _)| known == name);
        let (_, unit) = declared.expect("a workload measures only what it declares");
        metrics.push(metric(name, unit, "lower", values));
    }
    let done: u64 = passes.iter().map(|pass| pass.done).sum();
    Ok(json!({
        "workload": workload.name,
        "clock": arguments.clock.name(),
        "overhead": 0,
        "done": done,
        "metrics": metrics,
        "checks": checks,
    }))
}

fn metric(name: &str, unit: &str, direction: &str, values: &[f64]) -> Value {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    json!({
        "name": name,
        "unit": unit,
        "direction": direction,
        "operations": values.len(),
        "minimum": sorted[0],
        "median": median(&sorted),
        "mean": values.iter().sum::<f64>() / values.len() as f64,
    })
}

fn median(sorted: &[f64]) -> f64 {
    (sorted[(sorted.len() - 1) / 2] + sorted[sorted.len() / 2]) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_is_the_value_or_the_mean_of_two() {
        assert_eq!(median(&[1.0, 2.0, 9.0]), 2.0);
        assert_eq!(median(&[1.0, 2.0, 4.0, 9.0]), 3.0);
        let described = metric("call", "ns", "lower", &[3.0, 1.0, 5.0]);
        assert_eq!(described["minimum"], 1.0);
        assert_eq!(described["mean"], 3.0);
        assert_eq!(described["operations"], 3);
    }
}
