"""`ktrial kernel`: what it prints, and what it refuses."""

import json
from pathlib import Path

import pytest
from tests.support import kernel_images as make
from typer.testing import CliRunner, Result

from ktrial.cli.commands.kernel import app
from ktrial.kernels import kernel_registry
from ktrial.kernels.errors import KernelNotFound, NotAKernel


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture
def name(tmp_path: Path) -> str:
    (tmp_path / "config").write_text(make.CONFIG)
    image, modules = make.vmlinuz(tmp_path), make.module_tree(tmp_path)
    ran("add", f"path:{image}", "--modules", str(modules), "--config", str(tmp_path / "config"))
    return f"path:{image}"


def ran(*arguments: str) -> Result:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exception is None, result.exception
    return result


def refused(*arguments: str) -> BaseException:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exception is not None
    return result.exception


def test_add_prints_one_line_for_each_kernel(tmp_path: Path) -> None:
    first, two = make.vmlinuz(tmp_path, "one"), make.vmlinuz(tmp_path, "two", compression="xz")
    lines = ran("add", f"path:{first}", f"path:{two}").stdout.splitlines()
    assert [line.split()[:2] for line in lines] == [
        [f"path:{first}", make.RELEASE],
        [f"path:{two}", make.RELEASE],
    ]


def test_a_kernel_that_boots_slowly_is_mentioned(tmp_path: Path) -> None:
    (tmp_path / "vmlinuz").write_bytes(make.bzimage(make.COMPRESSIONS["xz"](make.elf(note=None))))
    message = ran("add", f"path:{tmp_path}/vmlinuz").stderr
    assert "boots slowly: it has no PVH note" in message


@pytest.mark.parametrize("columns", [60, 80])
def test_on_a_narrow_terminal_list_breaks_no_word(
    columns: int, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    kernel = kernel_registry.get(name)
    lines = ran("list").stdout.splitlines()
    words = {word for line in lines for word in line.split()}
    assert {kernel.release, kernel.digest[:12], "added"} <= words
    assert all(len(line) <= columns for line in lines)


def test_list_shows_every_kernel(name: str) -> None:
    kernel = kernel_registry.get(name)
    heading, line = ran("list").stdout.splitlines()
    assert heading.split() == ["name", "release", "flavour", "size", "added", "digest"]
    assert line.split()[:2] == [name, make.RELEASE]
    assert line.split()[-1] == kernel.digest[:12]


def test_list_of_nothing_says_how_to_begin() -> None:
    result = ran("list")
    assert result.stdout == ""
    assert "ktrial kernel add NAME" in result.stderr
    assert json.loads(ran("list", "--json").stdout) == []


def test_list_as_json_has_the_whole_record(name: str) -> None:
    (data,) = json.loads(ran("list", "--json").stdout)
    kernel = kernel_registry.get(name)
    assert data["digest"] == kernel.digest
    assert data["image"] == str(kernel.image)
    assert data["module_count"] == 2
    assert data["origin"]["provider"] == "path"


def test_show_tells_all(name: str) -> None:
    shown = ran("show", name).stdout
    kernel = kernel_registry.get(name)
    for part in (name, make.RELEASE, kernel.digest, "extracted", "2 files, 1 built in", "HZ=250", "unknown"):
        assert part in shown


def test_show_takes_the_start_of_a_digest(name: str) -> None:
    digest = kernel_registry.get(name).digest
    assert json.loads(ran("show", digest[:8], "--json").stdout)["config_options"]["CONFIG_HZ"] == "250"


def test_remove_says_what_it_freed(name: str, tmp_path: Path) -> None:
    assert "freed" in ran("remove", name).stdout
    assert isinstance(refused("show", name), KernelNotFound)
    assert isinstance(refused("remove", name), KernelNotFound)


def test_remove_of_a_shared_content_frees_nothing(tmp_path: Path) -> None:
    first, two = make.vmlinuz(tmp_path, "one"), make.vmlinuz(tmp_path, "two")
    ran("add", f"path:{first}", f"path:{two}")
    assert ran("remove", f"path:{first}").stdout.endswith(
        "nothing freed: another name has the same content\n"
    )
    assert kernel_registry.get(f"path:{two}").image.exists()


def test_what_is_no_kernel_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("hello\n")
    assert isinstance(refused("add", f"path:{tmp_path}/text"), NotAKernel)
