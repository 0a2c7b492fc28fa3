"""The Rust side's layout: names, descriptions, and which module needs which."""

import json
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
from tests.support.crates import circles, module_graph

CRATES = Path(__file__).parents[3] / "crates"
NAMES = sorted(file.parent.name for file in CRATES.glob("*/Cargo.toml"))


def manifest(crate: str) -> dict[str, Any]:
    return tomllib.loads((CRATES / crate / "Cargo.toml").read_text(encoding="utf-8"))


def test_the_crates_are_found() -> None:
    assert NAMES == [
        "agent",
        "coalesce",
        "confine",
        "insn",
        "ksymbols",
        "launch",
        "lockstep",
        "parallel",
        "probes",
        "rewind",
        "tasks",
        "unpack",
        "versions",
        "watch",
        "wire",
        "work",
    ]


@pytest.mark.parametrize("crate", NAMES)
def test_package_and_what_it_builds_have_the_directorys_name(crate: str) -> None:
    described = manifest(crate)
    targets = [*described.get("bin", []), *filter(None, [described.get("lib")])]
    assert described["package"]["name"] == f"ktrial-{crate}"
    assert {target["name"] for target in targets} == {crate}


@pytest.mark.parametrize("crate", NAMES)
def test_a_readme_names_each_file_the_invariants_and_the_tests(crate: str) -> None:
    text = (CRATES / crate / "README.md").read_text(encoding="utf-8")
    assert "**Invariants.**" in text
    assert "**Tests.**" in text
    source = CRATES / crate / "src"
    files = {file.name for file in source.glob("*.rs")} - {"lib.rs"}
    rooms = {f"{file.parent.name}/" for file in source.glob("*/mod.rs")}
    assert (files | rooms) - set(re.findall(r"`(\w+(?:\.rs|/))`", text)) == set()


@pytest.mark.parametrize("crate", NAMES)
def test_no_crate_takes_a_file_of_another(crate: str) -> None:
    taken = [
        path
        for file in CRATES.glob(f"{crate}/**/*.rs")
        for path in re.findall(r'(?:#\[path = |include(?:_str|_bytes)?!\()"([^"]+)"', file.read_text())
        if not (file.parent / path).resolve().is_relative_to(CRATES / crate)
    ]
    assert taken == []


@pytest.mark.parametrize("crate", NAMES)
def test_no_two_modules_of_a_crate_need_one_another(crate: str) -> None:
    assert circles(module_graph(CRATES / crate)) == set()


def test_each_version_of_a_crate_from_elsewhere_is_named_exactly() -> None:
    described = json.loads(
        subprocess.run(
            ["cargo", "metadata", "--format-version=1", "--filter-platform=x86_64-unknown-linux-gnu"],
            cwd=CRATES.parent,
            stdout=subprocess.PIPE,
            check=True,
        ).stdout
    )
    used = {(package["name"], package["version"]) for package in described["packages"] if package["source"]}
    named = {
        (dependency["name"], dependency["req"].removeprefix("="))
        for package in described["packages"]
        if not package["source"]
        for dependency in package["dependencies"]
        if dependency["req"].startswith("=")
    }
    assert used
    assert used == named


def test_a_circle_would_be_found(tmp_path: Path) -> None:
    for name, text in {
        "main.rs": "mod a;\nmod b;\nmod c;\nuse a::start;",
        "a.rs": "use crate::{b::{self, Thing}, c};",
        "b.rs": "// use crate::c::not_this;\nfn f() { super::c::g() }",
        "c.rs": "#[cfg(test)]\nmod tests {\n use crate::a;\n}",
        "d/mod.rs": "mod e;",
        "d/e.rs": "use super::helper;",
    }.items():
        (tmp_path / "src" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "src" / name).write_text(text)
    graph = module_graph(tmp_path)
    assert graph == {"crate": {"a"}, "a": {"b", "c"}, "b": {"c"}, "c": set(), "d": set(), "d::e": {"d"}}
    assert circles(graph) == set()
    (tmp_path / "src" / "c.rs").write_text("use crate::a::start;")
    assert circles(module_graph(tmp_path)) == {frozenset("abc")}


def test_a_circle_by_way_of_a_file_of_another_crate_would_be_found(tmp_path: Path) -> None:
    for name, text in {
        "one/src/main.rs": '#[path = "../../other/src/far.rs"]\nmod far;\nmod near;',
        "one/src/near.rs": "use crate::far::f;",
        "other/src/far.rs": "use crate::near::g;",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert circles(module_graph(tmp_path / "one")) == {frozenset({"far", "near"})}
