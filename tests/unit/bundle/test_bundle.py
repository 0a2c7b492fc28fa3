"""Bundles: the same study gives the same bytes, and what comes out is what went in."""

import hashlib
import io
import json
import shutil
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support import bundles
from tests.support.command_line import CommandLine

from ktrial import report
from ktrial.analysis.result import load_record
from ktrial.bundle import archive
from ktrial.bundle.errors import (
    BadBundle,
    BundleDamaged,
    BundleError,
    BundleTooLarge,
    NotABundle,
    SignatureWrong,
)
from ktrial.bundle.reading import open_bundle
from ktrial.bundle.writing import Wanted
from ktrial.store.store import open_store


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a store and its bundle: once, as the page takes its time."""
    where = tmp_path_factory.mktemp("made")
    bundles.fill(where / "trials.db")
    bundles.bundle(where / "trials.db", where / "quick.zip")
    return where


@pytest.fixture(autouse=True)
def quick_page(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bundles made in a test have a page that takes no time to draw; `made` has a real one."""
    quick = {**vars(report), "study_html": lambda record, _whys: f"<h1>{record.study.name}</h1>"}
    monkeypatch.setattr("ktrial.bundle.writing.report", SimpleNamespace(**quick))


@pytest.fixture
def store(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(made / "trials.db", tmp_path))


@pytest.fixture
def bundle(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(made / "quick.zip", tmp_path))


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(monkeypatch, capsys)


def test_the_same_study_gives_the_same_bytes(store: Path, tmp_path: Path) -> None:
    first = bundles.bundle(store, tmp_path / "a.zip")
    second = bundles.bundle(store, tmp_path / "b.zip")
    assert first.file.read_bytes() == second.file.read_bytes()
    assert first.digest == hashlib.sha256(first.file.read_bytes()).hexdigest()


def test_the_same_trials_stored_in_another_order_give_the_same_bytes(bundle: Path, tmp_path: Path) -> None:
    with open_bundle(bundle) as opened, open_store(tmp_path / "other.db") as other:
        number = other.study(opened.study)
        for trial in reversed(list(opened.trials())):
            other.add_trial(number, trial)
    files, again = bundles.files_of(bundle), bundles.bundle(tmp_path / "other.db", tmp_path / "c.zip").file
    differing = {name for name, content in bundles.files_of(again).items() if files[name] != content}
    assert not {name for name in differing if name.startswith("trials/")}


def test_what_comes_out_is_what_went_in(store: Path, bundle: Path, tmp_path: Path) -> None:
    with open_store(store) as before, open_bundle(bundle) as opened, open_store(tmp_path / "b.db") as after:
        number = opened.fill(after)
        stored, filled = load_record(before, "quick"), load_record(after, number)
        assert filled.trials == stored.trials
        assert filled.result == stored.result == opened.result()
        assert filled.study == stored.study


def test_anybody_can_read_it_without_ktrial(bundle: Path, tmp_path: Path) -> None:
    where = tmp_path / "unpacked"
    with zipfile.ZipFile(bundle) as opened:
        opened.extractall(where)
    subprocess.run(["sha256sum", "--quiet", "-c", archive.MANIFEST], cwd=where, check=True)
    assert "What does a process cost more" in (where / "README.md").read_text()
    crate = json.loads((where / "ro-crate-metadata.json").read_text())
    by_id = {entity["@id"]: entity for entity in crate["@graph"]}
    assert by_id["ro-crate-metadata.json"]["conformsTo"] == {"@id": "https://w3id.org/ro/crate/1.1"}
    assert by_id["ro-crate-metadata.json"]["about"] == {"@id": "./"}
    root = by_id["./"]
    assert {"name", "description", "datePublished", "license"} <= root.keys()
    parts = {part["@id"] for part in root["hasPart"]}
    there = {str(path.relative_to(where)) for path in where.rglob("*") if path.is_file()}
    assert parts == there - {"ro-crate-metadata.json", *archive.NOT_LISTED}
    for part in parts:
        assert by_id[part]["contentSize"] == str((where / part).stat().st_size)
    referred = [one["@id"] for each in ("instrument", "object", "result") for one in by_id["#run"][each]]
    assert set(referred) <= by_id.keys()


def test_packages_are_names_and_versions_and_no_addresses(bundle: Path) -> None:
    lines = bundles.files_of(bundle)["packages.txt"].decode().splitlines()
    assert any(line.startswith("numpy==") for line in lines)
    assert all(line.count("==") == 1 and "/" not in line and "@" not in line for line in lines)


def test_a_study_without_trials_is_not_bundled(tmp_path: Path) -> None:
    study = bundles.fill(tmp_path / "all.db")
    with open_store(tmp_path / "none.db") as store:
        store.study(study)
    with pytest.raises(BundleError, match="no trial") as refused:
        bundles.bundle(tmp_path / "none.db", tmp_path / "x.zip")
    assert "ktrial run quick" in refused.value.advice
    assert not (tmp_path / "x.zip").exists()


def changed_value(trial: dict[str, Any]) -> dict[str, Any]:
    trial["samples"][0]["value"] += 1
    return trial


def test_a_changed_digit_is_found_by_the_digests(bundle: Path, tmp_path: Path) -> None:
    files = bundles.files_of(bundle)
    before = files["trials/00000.json"]
    files["trials/00000.json"] = json.dumps(changed_value(json.loads(before))).encode()
    (tmp_path / "changed.zip").write_bytes(bundles.packed(files))
    with open_bundle(tmp_path / "changed.zip") as opened, pytest.raises(BundleDamaged, match="trials/00000"):
        list(opened.trials())


@pytest.fixture
def key(tmp_path: Path) -> Path:
    made = tmp_path / "id_ed25519"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(made)], check=True)
    public = made.with_name("id_ed25519.pub").read_text()
    (tmp_path / "signers").write_text(f"ada@example.org {public}")
    return made


def test_a_signature_tells_who_made_it(store: Path, key: Path, tmp_path: Path) -> None:
    signed = bundles.bundle(store, tmp_path / "signed.zip", Wanted(key=key)).file
    with open_bundle(signed, tmp_path / "signers") as opened:
        assert opened.signer == "ada@example.org"
    again = bundles.bundle(store, tmp_path / "again.zip", Wanted(key=key)).file
    assert again.read_bytes() == signed.read_bytes()


def test_a_digit_that_a_forger_changed_is_found_by_the_signature(
    store: Path, key: Path, tmp_path: Path
) -> None:
    signed = bundles.bundle(store, tmp_path / "signed.zip", Wanted(key=key)).file
    changed = bundles.forged(signed, tmp_path / "forged.zip", "trials/00000.json", changed_value)
    with open_bundle(changed) as opened:  # its digests fit: the forger has listed them anew
        assert len(list(opened.trials())) == 6
    with pytest.raises(SignatureWrong), open_bundle(changed, tmp_path / "signers"):
        pass


def test_a_stranger_s_signature_and_none_are_refused(
    store: Path, bundle: Path, key: Path, tmp_path: Path
) -> None:
    with pytest.raises(BundleError, match="is not signed"), open_bundle(bundle, tmp_path / "signers"):
        pass
    other = tmp_path / "other"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(other)], check=True)
    signed = bundles.bundle(store, tmp_path / "theirs.zip", Wanted(key=other)).file
    with pytest.raises(SignatureWrong), open_bundle(signed, tmp_path / "signers"):
        pass


def opening(file: Path) -> list[Any]:
    with open_bundle(file) as opened:
        return [opened.result(), opened.differences(), *opened.trials()]


def study_changed(change: Callable[[dict[str, Any]], None]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    def changed(study: dict[str, Any]) -> dict[str, Any]:
        change(study)
        return study

    return changed


FORGERIES: dict[str, tuple[str, Callable[[dict[str, Any]], Any], type[BundleError], str]] = {
    "another study": (
        "study.json",
        study_changed(lambda study: study.update(name="other")),
        BundleDamaged,
        "is not the study",
    ),
    "perturbations without end": (
        "study.json",
        study_changed(lambda study: study.update(perturbations=10**9)),
        BundleTooLarge,
        "trials",
    ),
    "levels that multiply": (
        "study.json",
        study_changed(
            lambda study: study.update(factors=[{**study["factors"][0], "name": str(n)} for n in range(40)])
        ),
        BundleTooLarge,
        "trials",
    ),
    "a guest of a petabyte": (
        "study.json",
        study_changed(lambda study: study["machine"].update(memory_mib=2**30)),
        BundleTooLarge,
        "MiB",
    ),
    "a format of tomorrow": (
        "bundle.json",
        study_changed(lambda contents: contents.update(format=99, ktrial="9.0")),
        BadBundle,
        "99",
    ),
    "more trials than there are": (
        "bundle.json",
        study_changed(lambda contents: contents.update(trials=7)),
        BundleDamaged,
        "trials/00006",
    ),
    "a trial that was never planned": (
        "trials/00001.json",
        study_changed(lambda trial: trial["planned"].update(block=17)),
        BundleDamaged,
        "none that the study plans",
    ),
    "a number that is none": (
        "trials/00001.json",
        study_changed(lambda trial: trial["samples"][0].update(value="Infinity")),
        BundleDamaged,
        "a number that is none",
    ),
    "more operations than a store can count": (
        "trials/00001.json",
        study_changed(lambda trial: trial["samples"][0].update(operations=2**63)),
        BundleDamaged,
        "samples.0.operations",
    ),
    "a place in the order that no store can keep": (
        "trials/00001.json",
        study_changed(lambda trial: trial["planned"].update(order=2**64)),
        BundleDamaged,
        "planned.order",
    ),
    "a key that nobody knows": (
        "trials/00001.json",
        study_changed(lambda trial: trial.update(run="rm -rf /")),
        BundleDamaged,
        "trials/00001.json: run",
    ),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_is_refused_with_what_is_wrong(name: str, bundle: Path, tmp_path: Path) -> None:
    file, change, kind, text = FORGERIES[name]
    changed = bundles.forged(bundle, tmp_path / "forged.zip", file, change)
    with pytest.raises(kind, match=text):
        opening(changed)


def with_entry(name: str, mode: int = 0o100644, content: bytes = b"x") -> bytes:
    path = io.BytesIO()
    with zipfile.ZipFile(path, "w") as made:
        info = zipfile.ZipInfo(name)
        info.external_attr = mode << 16
        made.writestr(info, content)
    return bytes(path.getvalue())


@pytest.mark.parametrize(
    "name", ["../x", "/etc/passwd", "a/../../x", "a\\b", "C:x", ".ssh/x", "a//b", "a/", "x" * 300, "a b", "é"]
)
def test_no_name_leaves_its_directory(name: str, tmp_path: Path) -> None:
    (tmp_path / "x.zip").write_bytes(with_entry(name))
    with pytest.raises(NotABundle):
        opening(tmp_path / "x.zip")


@pytest.mark.parametrize("mode", [0o120777, 0o020666, 0o060666, 0o010666, 0o140777, 0o040755])
def test_nothing_but_plain_files(mode: int, tmp_path: Path) -> None:
    (tmp_path / "x.zip").write_bytes(with_entry("manifest-sha256.txt", mode))
    with pytest.raises(NotABundle, match="no plain file"):
        opening(tmp_path / "x.zip")


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MOST_BYTES_OF_A_FILE", 1000)
    (tmp_path / "x.zip").write_bytes(with_entry("manifest-sha256.txt", content=b"0" * 1001))
    with pytest.raises(BundleTooLarge, match="1001 bytes, and at most 1000 bytes are read"):
        opening(tmp_path / "x.zip")


def test_many_small_bombs_are_one_large_one(
    tmp_path: Path, bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "MOST_BYTES", bundle.stat().st_size + 1)
    with pytest.raises(BundleTooLarge, match="unpacked it has"):
        opening(bundle)


@pytest.mark.parametrize("junk", [b"", b"PK", b"PK\x03\x04" + b"\0" * 100, b"#!/bin/sh\nexit\n" * 9])
def test_what_is_no_archive_is_told(junk: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.zip").write_bytes(junk)
    with pytest.raises(NotABundle):
        opening(tmp_path / "x.zip")


def test_an_archive_with_something_before_or_behind_it_is_refused(bundle: Path, tmp_path: Path) -> None:
    for data in (b"#!/bin/sh\n" + bundle.read_bytes(), bundle.read_bytes() + b"\0"):
        (tmp_path / "x.zip").write_bytes(data)
        with pytest.raises(NotABundle):
            opening(tmp_path / "x.zip")


def test_markup_and_escapes_of_a_bundle_are_text(store: Path, tmp_path: Path, cli: CommandLine) -> None:
    evil = "<script>alert(1)</script>\x1b]0;owned\x07![x](http://x)"
    bundles.fill(tmp_path / "evil.db", question=evil)
    file = bundles.bundle(tmp_path / "evil.db", tmp_path / "evil.zip").file
    readme = bundles.files_of(file)["README.md"].decode()
    assert "<script>" not in readme
    assert "\x1b" not in readme
    assert cli("report", file, "--html", tmp_path / "evil.html").status == 0
    page = (tmp_path / "evil.html").read_text()
    assert "&lt;script&gt;alert(1)" in page
    assert "<script>alert" not in page
    for form in ((), ("--json",)):
        assert "\x1b" not in cli("show", file, *form).output


def test_show_and_report_work_on_a_bundle(
    store: Path, bundle: Path, tmp_path: Path, cli: CommandLine
) -> None:
    shown = cli("show", bundle)
    assert (shown.status, shown.output) == (0, cli("show", "quick", "--store", store).output)
    data = json.loads(cli("show", bundle, "--json").output)
    assert (data["store"], data["study"], len(data["trials"])) == (str(bundle), "quick", 6)
    written = cli("report", bundle)
    assert (written.status, written.output) == (0, f"report: {tmp_path / 'quick.html'}\n")
    assert (
        cli("report", bundle, "--markdown").output
        == cli("report", "quick", "--markdown", "--store", store).output
    )


def test_the_command_tells_what_it_wrote(store: Path, tmp_path: Path, cli: CommandLine) -> None:
    said = cli("bundle", "quick", "-o", tmp_path / "b.zip", "--store", store)
    assert said.status == 0
    assert said.output.startswith(f"bundle: {tmp_path / 'b.zip'}\n6 trials, ")
    assert "--licence" in said.messages
    data = json.loads(cli("bundle", "-o", tmp_path / "c.zip", "--store", store, "--json").output)
    assert data["sha256"] == hashlib.sha256((tmp_path / "b.zip").read_bytes()).hexdigest()
    assert [one["obtain"] for one in data["kernels"]] == [
        "debian:6.1.0-50-cloud-amd64",
        "debian:6.12.57+deb13-cloud-amd64",
    ]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("bundle", "quick", "-o", "/nowhere/x.zip"), "cannot be written"),
        (("bundle", "quick", "-o", "x.zip", "--licence", "do what you like"), "is not an SPDX identifier"),
        (("bundle", "quick", "-o", "x.zip", "--sign", "/nowhere/key"), "there is no key"),
        (("bundle", "quick", "-o", "x.zip", "--with-kernels"), "leave --with-kernels out"),
        (("bundle", "other", "-o", "x.zip"), "has no study other"),
        (("show", "quick", "--signers", "f"), "only a bundle is signed"),
    ],
)
def test_mistakes_are_told(
    words: tuple[str, ...],
    text: str,
    store: Path,
    tmp_path: Path,
    cli: CommandLine,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "cache"))
    said = cli(*words, "--store", store)
    assert said.status in {1, 2}
    assert text in said.messages
    assert not (tmp_path / "x.zip").exists()
