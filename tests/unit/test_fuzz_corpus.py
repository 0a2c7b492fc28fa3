"""Inputs that a fuzzer came upon, read again by the same targets: none may be a finding."""

import importlib
import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol, cast

import pytest
from tests.fuzz.limits import BYTES, TooLarge, TooSlow, limited
from tests.fuzz.targets import CORPUS, TARGETS

MOST_BYTES = 200_000
"""Of all inputs together: what a fuzzer found is cut down before it is kept."""


class TargetModule(Protocol):
    """A module of tests/fuzz."""

    WORDS: tuple[bytes, ...]

    read: Callable[[bytes], None]


def target(name: str) -> TargetModule:
    return cast(TargetModule, importlib.import_module(f"tests.fuzz.{name}"))


def inputs(name: str) -> list[Path]:
    return sorted((CORPUS / name).iterdir())


@pytest.fixture(autouse=True)
def environment() -> Iterator[None]:
    """Targets change this process's, which is a fuzzer's alone."""
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.mark.parametrize("name", TARGETS)
def test_no_kept_input_is_a_finding(name: str) -> None:
    read = target(name).read
    assert len(inputs(name)) > 3
    for file in inputs(name):
        with limited():
            read(file.read_bytes())


def test_the_inputs_are_few_and_each_belongs_to_a_target() -> None:
    assert {directory.name for directory in CORPUS.iterdir()} == {*TARGETS, "wire"}
    assert sum(file.stat().st_size for file in CORPUS.rglob("*") if file.is_file()) <= MOST_BYTES


def test_what_takes_too_much_time_is_a_finding() -> None:
    with pytest.raises(TooSlow), limited(seconds=0.02):
        for _ in itertools.count():  # Python 3.14 leaves `with` where a signal ends any(… for …)
            pass


def test_what_takes_too_much_memory_is_a_finding() -> None:
    with pytest.raises(TooLarge), limited():
        bytes(2 * BYTES)  # what the process has freed, it may use again


def test_the_sound_bundle_is_read_to_its_end() -> None:
    """The changes that inputs make are to a bundle that is one."""
    bundle = importlib.import_module("tests.fuzz.bundle")
    assert bundle.how_far(bundle.SOUND.read_bytes()) == "read"
