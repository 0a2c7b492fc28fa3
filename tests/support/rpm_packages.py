"""RPM packages as rpmbuild makes them, of files that a test lays out."""

import subprocess
from pathlib import Path

_SPEC = """\
Name: {name}
Version: {version}
Release: {release}
Summary: a package of a test
License: GPL-2.0
BuildArch: {architecture}
AutoReqProv: no
%define _binary_payload {payload}
%define __os_install_post %{{nil}}
%define _build_id_links none
%description
Made by a test.
%install
mkdir -p %{{buildroot}}
cp -a {files}/. %{{buildroot}}/
%files
/*
"""


def package(
    directory: Path,
    name: str,
    files: Path,
    build: str = "6.11.4-301.fc41",
    architecture: str = "x86_64",
    payload: str = "w3.zstdio",
) -> Path:
    """A package of everything below `files`, in the directory. `payload`: rpm's name for a compression."""
    version, _, release = build.partition("-")
    work = directory / f".{name}-{build}.{architecture}"
    work.mkdir(parents=True)
    facts = {"name": name, "version": version, "release": release, "files": files}
    (work / "a.spec").write_text(_SPEC.format(**facts, architecture=architecture, payload=payload))
    options = ("--define", f"_topdir {work}", "--define", f"_rpmdir {work}/out", "--target", architecture)
    command = ["rpmbuild", "-bb", "--quiet", *options, str(work / "a.spec")]
    subprocess.run(command, check=True, capture_output=True)
    (made,) = (work / "out").rglob("*.rpm")
    return made.rename(directory / made.name)
