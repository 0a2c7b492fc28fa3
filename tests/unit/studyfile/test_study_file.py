"""A study file becomes a Study; every mistake in one is named with its line, its key and what is allowed."""

import re
from pathlib import Path

import pytest
from tests.support.command_line import KNOWN
from tests.support.kernel_images import bzimage
from tests.support.places import DATA
from tests.support.program_texts import KERNELS, load_text

from ktrial.model.design import Design, FactorKind
from ktrial.studyfile.errors import (
    StudyError,
    StudyMistake,
    StudySyntaxError,
    StudyUnreadable,
)
from ktrial.studyfile.reader import load
from ktrial.studyfile.writer import study_toml

EVERY_KEY = """\
name = "upgrade"
question = '''
    What did
    it cost?'''
margin = "2.5 %"
perturbations = 5
design = "one-factor-at-a-time"
seed = 7
workloads = ["syscall", { name = "hackbench", groups = 2, transport = "socket" },
    { name = "mine", command = "./bench.sh 10", files = ["bench.sh"], repeats = 2, discarded = 3, metrics = [
               { name = "rate", unit = "req/s", direction = "higher", regex = "rate: ([0-9.]+)" },
               { name = "p99", json = "latency.p99" },
               { name = "seconds" } ] }]
[machine]
kind = "fake"
kernel = "debian:6.12:generic"
memory = "1G"
cpus = 2
boot = ["mitigations=off", 'dyndbg="file sched.c +p"']
modules = ["loop"]
files = ["bench.sh"]
settle_seconds = 0.5
limit_seconds = 60
limit_instructions = 5_000_000
[factors."vm.swappiness"]
levels = [60, 10]
baseline = 10
[factors."/sys/kernel/mm/transparent_hugepage/enabled"]
levels = ["always", "never"]
[factors.init_on_alloc]
kind = "boot"
levels = [0, 1]
[factors."hackbench.load"]
levels = [0.5, 1]
[factors.size]
kind = "setting"
target = "kernel.threads-max"
levels = [100, 200]
"""


def test_the_smallest_study_has_sensible_defaults(tmp_path: Path) -> None:
    study = load_text(tmp_path, f'workloads = ["syscall"]\n{KERNELS}', "my upgrade.toml")
    assert study.name == "my-upgrade"
    assert study.margin == 0.01
    assert study.perturbations == 3
    assert study.design is Design.FULL
    assert study.machine.kind == "exact"
    assert study.machine.memory_mib == 512
    assert study.machine.settle_ns == 3_000_000_000
    [factor] = study.factors
    assert (factor.name, factor.kind, factor.baseline) == ("kernel", FactorKind.KERNEL, "debian:6.1")


def test_every_key_is_read(tmp_path: Path) -> None:
    (tmp_path / "bench.sh").write_text("echo rate: 1\n")
    study = load_text(
        tmp_path,
        EVERY_KEY,
    )
    assert study.name == "upgrade"
    assert study.question == "What did it cost?"
    assert study.margin == pytest.approx(0.025)
    assert (study.perturbations, study.design, study.seed) == (5, Design.ONE_AT_A_TIME, 7)
    machine = study.machine
    assert (machine.kind, machine.kernel, machine.memory_mib, machine.cpus) == (
        "fake",
        "debian:6.12:generic",
        1024,
        2,
    )
    assert machine.boot == ("mitigations=off", 'dyndbg="file sched.c +p"')
    assert machine.files == (str(tmp_path / "bench.sh"),)
    assert (machine.settle_ns, machine.limit_seconds, machine.limit_instructions) == (
        500_000_000,
        60,
        5_000_000,
    )
    assert [(factor.name, factor.kind.value, factor.target, factor.baseline) for factor in study.factors] == [
        ("vm.swappiness", "setting", "vm.swappiness", 10),
        (
            "/sys/kernel/mm/transparent_hugepage/enabled",
            "setting",
            "/sys/kernel/mm/transparent_hugepage/enabled",
            "always",
        ),
        ("init_on_alloc", "boot", "init_on_alloc", 0),
        ("hackbench.load", "parameter", "hackbench.load", 0.5),
        ("size", "setting", "kernel.threads-max", 100),
    ]
    assert [use.label for use in study.workloads] == [
        "syscall",
        "hackbench(groups=2, transport=socket)",
        "mine",
    ]
    command = study.workloads[2].command
    assert command is not None
    assert command.argv == (str(tmp_path / "bench.sh"), "10")
    assert command.files == (str(tmp_path / "bench.sh"),)
    assert (command.repeats, command.discarded) == (2, 3)
    assert [(rule.name, rule.regex, rule.json_path, rule.direction.value) for rule in command.metrics] == [
        ("rate", "rate: ([0-9.]+)", "", "higher"),
        ("p99", "", "latency.p99", "lower"),
        ("seconds", "", "", "lower"),
    ]


def test_a_study_that_was_written_out_is_the_same_study(tmp_path: Path) -> None:
    (tmp_path / "bench.sh").write_text("echo rate: 1\n")
    memory = '[factors.memory]\nlevels = ["512M", "1G"]\n'
    for text in (EVERY_KEY, f'workloads = ["fork"]\n{KERNELS}{memory}'):
        study = load_text(tmp_path, text)
        assert load_text(tmp_path, study_toml(study), "again.toml") == study


def test_a_machine_may_be_just_its_name(tmp_path: Path) -> None:
    study = load_text(tmp_path, f'machine = "fake"\nworkloads = ["fork"]\n{KERNELS}')
    assert study.machine.kind == "fake"


def test_an_empty_level_leaves_a_boot_parameter_out(tmp_path: Path) -> None:
    factor = '[factors.nosmt]\nkind = "boot"\nlevels = ["", "nosmt", "force"]\n'
    study = load_text(tmp_path, f'workloads = ["fork"]\nmachine = {{ kernel = "host" }}\n{factor}')
    assert study.factors[0].levels == ("", "nosmt", "force")


def test_relative_paths_are_looked_for_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    for name in ("old/vmlinuz", "new"):
        (tmp_path / name).write_bytes(bzimage(b"kernel"))
    levels = f'levels = ["path:old/vmlinuz", "path:{tmp_path}/new"]'
    study = load_text(tmp_path, f'workloads = ["fork"]\n[factors.kernel]\n{levels}\n')
    assert study.factors[0].levels == (f"path:{tmp_path}/old/vmlinuz", f"path:{tmp_path}/new")
    assert study.factors[0].baseline == f"path:{tmp_path}/old/vmlinuz"


def test_byte_order_mark_and_dos_line_ends_are_no_mistake(tmp_path: Path) -> None:
    text = f'﻿workloads = ["fork"]\n{KERNELS}'.replace("\n", "\r\n")
    assert load_text(tmp_path, text).workloads[0].name == "fork"


def _bad_studies() -> list[tuple[str, str, str]]:
    """Label, text and message of each study in bad_studies.txt."""
    text = (DATA / "bad_studies.txt").read_text()
    cases = re.findall(r"^== (.*?)\n(.*?)\n-> (.*?)$", text, re.DOTALL | re.MULTILINE)
    return [
        (label, study.replace("KERNELS", KERNELS.strip()) + "\n", message) for label, study, message in cases
    ]


HUGE = [
    (
        "too many trials",
        f'workloads = ["fork"]\nperturbations = 1000\n{KERNELS}[factors."a.b"]\nlevels = {[*range(100)]}\n',
        "200 treatments in 1000 blocks are 200000 trials; a study has at most 100000",
    ),
    (
        "huge level",
        f'workloads = ["fork"]\n{KERNELS}[factors."vm.x"]\nlevels = [1, 0x{"f" * 5000}]\n',
        "found a number of 20000 bits: whole numbers have at most 64 bits",
    ),
    (
        "huge margin",
        f'workloads = ["fork"]\nmargin = 1{"0" * 400}\n{KERNELS}',
        "study.toml:2: margin: found a number of 1329 bits: a margin lies above 0",
    ),
    (
        "long text",
        f'workloads = ["fork"]\nmargin = "{"x" * 5000}"\n{KERNELS}',
        "xxx… (5002 characters): a margin is a percentage",
    ),
]
BAD = _bad_studies() + HUGE


@pytest.mark.parametrize(("text", "message"), [case[1:] for case in BAD], ids=[case[0] for case in BAD])
def test_a_mistake_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(StudyMistake) as caught:
        load_text(tmp_path, text)
    assert message in str(caught.value)
    assert str(caught.value).startswith(str(tmp_path / "study.toml"))
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2
    assert "ktrial help studies" in caught.value.advice


def test_every_kernel_that_is_a_number_is_named(tmp_path: Path) -> None:
    with pytest.raises(StudyMistake) as caught:
        load_text(tmp_path, 'workloads = ["fork"]\n[factors.kernel]\nlevels = [6.1, 6.12]\n')
    allowed = 'allowed: a kernel\'s name, as text: "debian:6.12"'
    assert f"line 3: factors.kernel.levels[0]: found 6.1; {allowed}" in str(caught.value)
    assert f"line 3: factors.kernel.levels[1]: found 6.12; {allowed}" in str(caught.value)


def test_all_mistakes_are_named_at_once_in_the_order_of_the_file(tmp_path: Path) -> None:
    with pytest.raises(StudyMistake) as caught:
        load_text(tmp_path, f'seed = -1\nworkloads = ["frok"]\nmargin = 2\n[machine]\ncpus = 0\n{KERNELS}')
    assert str(caught.value).splitlines() == [
        f"{tmp_path}/study.toml: 4 mistakes:",
        "  line 1: seed: found -1; allowed: a whole number from 0 to 2147483647",
        '  line 2: workloads[0]: there is no workload "frok"; did you mean "fork"? There are: '
        "syscall, fork, pipe, hackbench",
        '  line 3: margin: found 2: a margin has its percent sign: as a percentage it is "2 %"',
        "  line 5: machine.cpus: found 0; allowed: a whole number from 1 to 256",
    ]


@pytest.mark.parametrize(
    ("content", "kind", "message"),
    [
        (b"", StudyError, "study.toml: the study is empty"),
        (b"# only a comment\n", StudyError, "study.toml: the study is empty"),
        (b"a = 1\nb = \n", StudySyntaxError, "study.toml:2:5: this is not TOML: invalid value"),
        (b"a = 1\na = 2\n", StudySyntaxError, "study.toml:2:6: this is not TOML: cannot overwrite a value"),
        (
            b"a = [1,\n\n",
            StudySyntaxError,
            "study.toml:3:1: this is not TOML: invalid value at the end of the file: is a bracket or",
        ),
        (b"a = " + b"[" * 100_000, StudySyntaxError, "study.toml: this is not TOML: it is nested too deeply"),
        (b"a = 1" + b"0" * 5000, StudySyntaxError, "this is not TOML: exceeds the limit"),
        (b"a = 1\nb = '\xff'\n", StudyUnreadable, "study.toml:2 cannot be read: it is not UTF-8 text"),
        (
            b"\x7fELF\x02\x01\x01\x00\x80\xff",
            StudyUnreadable,
            "study.toml:1 cannot be read: it is not UTF-8 text",
        ),
        (b"#" * (1024 * 1024 + 1), StudyUnreadable, "it is larger than 1 MiB"),
    ],
    ids=["empty", "comment", "value", "twice", "open", "deep", "digits", "not-utf-8", "program", "large"],
)
def test_what_is_no_study_is_refused(
    tmp_path: Path, content: bytes, kind: type[StudyError], message: str
) -> None:
    path = tmp_path / "study.toml"
    path.write_bytes(content)
    with pytest.raises(kind) as caught:
        load(path, KNOWN)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("no-such-file.toml", "cannot be read: No such file or directory"),
        (".", "cannot be read: Is a directory"),
        ("a\0b", "cannot be read: embedded null byte"),
        ("/dev/zero", "cannot be read: it is larger than 1 MiB"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, path: str, message: str) -> None:
    with pytest.raises(StudyUnreadable) as caught:
        load(tmp_path / path, KNOWN)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            'workloads = ["fork"]\n[factors]\n  [factors.kernel]\n levels = [\n "debian:6.1", #\n "x:1" ]',
            6,
        ),
        ('workloads = ["fork"]\nfactors.kernel.levels = ["debian:6.1",\n "x:1"]', 3),
        ('workloads = ["fork"]\nfactors = { kernel = { levels = ["debian:6.1", "x:1"] } }', 2),
        ('workloads = ["fork"]\n["factors" . \'kernel\']\nlevels = ["debian:6.1", "x:1"]', 3),
        ('workloads = ["fork"]\n["fac\\u0074ors".kernel]\n"levels" = ["debian:6.1", "x:1"]', 3),
    ],
    ids=["indented", "dotted", "inline", "quoted", "escaped"],
)
def test_the_line_is_right_however_the_key_is_written(tmp_path: Path, text: str, line: int) -> None:
    with pytest.raises(StudyMistake) as caught:
        load_text(tmp_path, text)
    assert f"study.toml:{line}: factors.kernel.levels[1]: " in str(caught.value)


def test_the_line_is_right_in_arrays_of_tables(tmp_path: Path) -> None:
    text = f"""[[workloads]]
name = "fork"
[[workloads]]
name = "mine"
command = "x"
[[workloads.metrics]]
name = "a"
[[workloads.metrics]]
name = "b"
direction = "up"
{KERNELS}"""
    with pytest.raises(StudyMistake) as caught:
        load_text(tmp_path, text)
    assert 'study.toml:10: workloads[1].metrics[1].direction: there is no direction "up"' in str(caught.value)


@pytest.mark.parametrize(
    "command",
    [
        "/bin/echo 'a | b' '*'",
        '/bin/echo "a > b; ~"',
        "/usr/bin/find . -exec true {} \\\\;",
        "/bin/true a~b x=~/y",
    ],
)
def test_what_is_quoted_for_a_shell_is_passed_on(tmp_path: Path, command: str) -> None:
    study = load_text(tmp_path, f'workloads = [{{ name = \'mine\', command = """{command}""" }}]\n{KERNELS}')
    assert study.workloads[0].command


@pytest.mark.parametrize("text", ["question: four\nworkloads:\n  - fork\n", "question = 'a'\n- fork\n"])
def test_yaml_is_told_from_a_slip_in_toml(tmp_path: Path, text: str) -> None:
    with pytest.raises(StudyError) as caught:
        load_text(tmp_path, text)
    assert "this looks like YAML; a study is TOML" in str(caught.value)
    assert "ktrial help studies" in caught.value.advice


def test_a_name_that_is_nearly_one_is_suggested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "upgrade.toml").touch()
    for typed, meant in (("qick", "quick"), ("upgrad.toml", "upgrade.toml")):
        with pytest.raises(StudyError) as caught:
            load(Path(typed), KNOWN)
        assert str(caught.value).endswith(f"No such file or directory (did you mean {meant}?).")


def test_a_mistake_does_not_hide_others_nor_make_new_ones(tmp_path: Path) -> None:
    text = 'margn = 1\nworkloads = ["frok", { name = "mine", command = 3 }]\n[factors.kernel]\nlevls = []\n'
    with pytest.raises(StudyMistake) as caught:
        load_text(tmp_path, text)
    places = {line.split(": ")[1] for line in str(caught.value).splitlines()[1:]}
    refused = {"margn", "workloads[1].command", "factors.kernel.levls", "factors.kernel"}
    assert places == refused | {"workloads[0]"}
