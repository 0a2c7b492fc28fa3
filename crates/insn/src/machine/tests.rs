use super::*;
use crate::set_associative::Replacement;

/// Arguments as Python writes them, each of two letters and more.
const GIVEN: [(&str, &str); 41] = [
    ("l1i", "32768:8:64"),
    ("l1d", "49152:12:64"),
    ("l2", "262144:4:64"),
    ("llc", "8388608:16:64"),
    ("prefetch", "1"),
    ("strides", "24"),
    ("itlb", "128:8"),
    ("dtlb", "64:4"),
    ("stlb", "1536:12"),
    ("branches", "12:16:4096"),
    ("instruction", "250"),
    ("string-bytes", "32"),
    ("string", "30000"),
    ("levels", "10000:40000:200000"),
    ("stores", "50"),
    ("translations", "9000:30000"),
    ("walk-level", "5000"),
    ("sample", "1"),
    ("paging", "32:4:2"),
    ("misprediction", "16000"),
    ("interrupt", "500000"),
    ("device", "1000000"),
    ("divide", "26000"),
    ("locked", "18000"),
    ("fence", "33000"),
    ("pause", "140000"),
    ("rdtsc", "25000"),
    ("cpuid", "100000"),
    ("rdmsr", "90000"),
    ("wrmsr", "120000"),
    ("spec-ctrl", "130000"),
    ("ibpb", "4500000"),
    ("l1d-flush", "2000000"),
    ("invlpg", "150000"),
    ("mov-cr3", "170000"),
    ("mov-cr", "160000"),
    ("swapgs", "7000"),
    ("verw", "500000"),
    ("port", "2000000"),
    ("syscall", "60000"),
    ("sysret", "61000"),
];

/// A machine as arguments say it.
pub fn a_machine() -> Machine {
    with("prefetch", "0").unwrap()
}

fn with(name: &'static str, value: &'static str) -> Result<Machine, String> {
    let mut given: Vec<_> = GIVEN
        .iter()
        .copied()
        .filter(|(given, _)| *given != name)
        .collect();
    given.push(("iret", "300000"));
    if !value.is_empty() {
        given.push((name, value));
    }
    Machine::read(&given)
}

#[test]
fn all_arguments() {
    let machine = with("l1i", "65536:16:64").unwrap();
    assert_eq!(
        machine.caches.code,
        Shape {
            size: 65536,
            ways: 16,
            line: 64,
            replacement: Replacement::Lru,
        }
    );
    assert_eq!(
        machine.translations.second,
        Size {
            entries: 1536,
            ways: 12
        }
    );
    assert_eq!(machine.branches.targets, 4096);
    assert_eq!(machine.paging, Some([32, 4, 2]));
    assert_eq!(with("paging", "none").unwrap().paging, None);
    assert_eq!(machine.costs.levels, [10_000, 40_000, 200_000]);
    assert_eq!(machine.costs.of(Class::InterruptReturn), 300_000);
    assert_eq!(machine.costs.of(Class::Plain), 0);
    assert_eq!(machine.costs.base(8, 64), 8 * 250 + 2000);
}

#[test]
fn caches_that_cannot_be_sampled_are_refused() {
    assert_eq!(with("sample", "9").unwrap().sample, 9);
    let given = |name: &str| match name {
        "sample" => "9",
        "l1i" => "16384:8:64",
        _ => GIVEN
            .iter()
            .find(|(known, _)| *known == name)
            .map_or("300000", |one| one.1),
    };
    let names = GIVEN.iter().map(|one| one.0).chain(["iret"]);
    let all: Vec<_> = names.map(|name| (name, given(name))).collect();
    assert!(Machine::read(&all)
        .unwrap_err()
        .contains("caches of 64 sets or more"));
}

#[test]
fn what_is_missing_or_cannot_be_is_named() {
    for (name, value, said) in [
        ("l2", "", "model-l2 is missing"),
        ("l2", "262144:4", "model-l2: 262144:4 is not of the form"),
        ("divide", "many", "model-divide=many: not 1 numbers"),
        ("levels", "1:2", "model-levels=1:2: not 3 numbers"),
        (
            "stlb",
            "1535:12",
            "model-stlb: entries / ways must be a power of two",
        ),
        ("branches", "40:16:64", "1 to 20 bits"),
        ("sample", "8", "model-sample: a divisor of 63"),
        ("sample", "0", "model-sample: a divisor of 63"),
        ("paging", "32:4", "model-paging=32:4: not 3 numbers"),
        ("paging", "32:4:9999999", "at most 1048576 entries a level"),
        ("branches", "12:16:6", "a multiple of 4 targets"),
    ] {
        let error = with(name, value).unwrap_err();
        assert!(error.contains(said), "{error}");
    }
}
