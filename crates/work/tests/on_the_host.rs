//! Every workload runs on the host, with few operations, and reports what it did; bad command lines are refused.

use std::process::{Command, Output};

use serde_json::Value;

fn work(line: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_work"))
        .args(line.split_whitespace())
        .output()
        .expect("work can be started")
}

fn report(line: &str) -> Value {
    let output = work(line);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "work {line}: {} {said}",
        output.status
    );
    serde_json::from_slice(&output.stdout).expect("the report is JSON")
}

fn names() -> Vec<String> {
    let list = report("--list");
    let all = list.as_array().expect("a list").iter();
    all.map(|workload| workload["name"].as_str().expect("a name").to_owned())
        .collect()
}

fn check(line: &str, operations: u64) {
    let report = report(line);
    let metric = &report["metrics"][0];
    assert_eq!(metric["operations"], operations, "{line}: {report}");
    assert_eq!(metric["unit"], "ns", "{line}");
    let number = |name: &str| metric[name].as_f64().expect("a number");
    assert!(number("minimum") <= number("median"), "{line}: {report}");
    assert!(number("minimum") <= number("mean"), "{line}: {report}");
    assert!(number("median") > 0.0, "{line}: {report}");
    assert!(
        report["checks"].as_u64() >= Some(operations),
        "{line}: {report}"
    );
}

#[test]
fn every_workload_runs_and_reports() {
    let names = names();
    assert_eq!(names.len(), 30);
    for name in names.iter().filter(|name| *name != "unixbench") {
        let smaller = match name.as_str() {
            "seq-read" | "random-read" | "stream-write" | "oltp" | "fileio" => "--size 2",
            "file-server" => "--small 9 --medium 5 --large 2 --requests 80",
            _ => "",
        };
        check(
            &format!("{name} --clock monotonic --operations 3 --passes 2 {smaller}"),
            6,
        );
    }
}

#[test]
fn a_file_is_served_in_each_of_its_ways() {
    for method in [
        "sendfile",
        "sendfile-nonblocking",
        "read-write",
        "splice",
        "mmap-send",
    ] {
        let files = "--small 9 --medium 5 --large 2 --requests 80 --connections 3";
        let line = format!("file-server --clock monotonic --method {method} {files} --passes 2");
        check(&line, 2);
    }
}

#[test]
fn what_is_read_and_written_is_in_the_metrics() {
    let line = "fileio --clock monotonic --size 2 --count 2 --requests 60 --sync 20 --passes 2";
    let report = report(line);
    let metrics = report["metrics"].as_array().expect("a list");
    let named = |name: &str| metrics.iter().find(|metric| metric["name"] == name);
    assert!(named("written").is_some_and(|metric| metric["unit"] == "KiB"));
    // 60 requests and 3 rounds of fsync, each with its latency.
    let median = |name: &str| named(name).and_then(|metric| metric["median"].as_f64());
    assert!(median("rate") > Some(0.0));
    assert!(median("latency p50") <= median("latency max"));
}

#[test]
fn hackbench_runs_in_each_of_its_ways() {
    for workers in ["processes", "threads"] {
        for channel in ["sockets", "pipes"] {
            let ways = format!("--workers {workers} --channel {channel}");
            check(
                &format!(
                    "hackbench --clock monotonic --groups 2 --fds 4 --loops 3 --passes 2 {ways}"
                ),
                2,
            );
        }
    }
}

#[test]
fn unixbench_scores_each_test_and_works_out_an_index() {
    let line = "unixbench --clock monotonic --milliseconds 20 --rounds 2 --copies 2";
    let report = report(line);
    let metrics = report["metrics"].as_array().expect("metrics");
    let value = |name: &str| {
        let found = metrics.iter().find(|metric| metric["name"] == name);
        found.and_then(|metric| metric["median"].as_f64())
    };
    assert_eq!(metrics.len(), 1 + 12 + 1, "{report}");
    assert!(value("index").is_none(), "{report}");
    assert!(value("index of other durations") > Some(0.0), "{report}");
    for test in ["dhry2reg", "execl", "shell8", "context1"] {
        assert!(value(test) > Some(0.0), "{report}");
    }
}

#[test]
fn one_test_of_unixbench_has_no_index() {
    let line = "unixbench --clock monotonic --test spawn --milliseconds 20 --rounds 1";
    let report = report(line);
    let metrics = report["metrics"].as_array().expect("metrics").iter();
    let names: Vec<_> = metrics.map(|metric| metric["name"].as_str()).collect();
    assert_eq!(names, [Some("run"), Some("spawn")], "{report}");
}

#[test]
fn copies_that_start_over_are_still_right() {
    for size in [256, 1024, 4096] {
        check(
            &format!("copy-{size} --clock monotonic --blocks 7 --operations 20 --passes 1"),
            20,
        );
    }
}

#[test]
fn the_vector_holds_every_operation_of_the_passes_that_count() {
    let report = report("syscall --clock monotonic --operations 5 --passes 2 --vector");
    let vector = report["metrics"][0]["vector"].as_array().expect("a vector");
    assert_eq!(vector.len(), 10);
}

#[test]
fn files_are_gone_afterwards() {
    let place = std::env::temp_dir().join(format!("ktrial-test-{}", std::process::id()));
    std::fs::create_dir(&place).expect("a fresh directory");
    check(
        &format!(
            "copy-1024 --clock monotonic --operations 2 --passes 1 --path {}",
            place.display()
        ),
        2,
    );
    let left = std::fs::read_dir(&place).expect("still there").count();
    std::fs::remove_dir_all(&place).expect("our own");
    assert_eq!(left, 0);
}

#[test]
fn doing_nothing_succeeds_silently() {
    let output = work("--noop");
    assert!(output.status.success());
    assert!(output.stdout.is_empty() && output.stderr.is_empty());
}

#[test]
fn misuse_has_status_2_and_says_what_is_allowed() {
    for (line, part) in [
        ("forkk", "nearest: fork"),
        ("hackbench --groups 0", "from 1 to"),
        ("fork --operations many", "a whole number"),
    ] {
        let output = work(line);
        assert_eq!(output.status.code(), Some(2), "{line}");
        assert!(output.stdout.is_empty(), "{line}");
        assert!(
            String::from_utf8_lossy(&output.stderr).contains(part),
            "{line}"
        );
    }
}

#[test]
fn a_workload_that_cannot_do_its_work_has_status_1_and_no_report() {
    // /proc is a directory in which nobody can make a directory.
    let output = work("stat --clock monotonic --path /proc");
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("work: stat: /proc/ktrial-work-"));
}
