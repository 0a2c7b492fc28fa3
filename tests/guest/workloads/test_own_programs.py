"""Ten programs of others, each captured by one command, and run on two kernels: to the last digit again.

Each is a script that makes what it needs, so that its work does not depend on what ran before. wrk alone
counts seconds, and one is its least: a second of a guest is a billion instructions.
"""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.support.real_runs import ktrial

pytestmark = [pytest.mark.guest, pytest.mark.nightly]

POSTGRES = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
POSTGRES_WORDS = f"""\
BIN={POSTGRES[-1] if POSTGRES else ""}
SETTINGS="-h '' -c fsync=off -c shared_buffers=16MB -c jit=off -c autovacuum=off"
"""


class Program(NamedTuple):
    """What is run, in a directory of its own."""

    needs: tuple[str, ...]
    script: str
    before: str = ":"
    """What is made here, once: initdb alone is two billion instructions."""
    metrics: str = ""
    """The format of what it prints, where that is compared; else its instructions are."""


PROGRAMS = {
    "sqlite3": Program(
        ("sqlite3",),
        "rm -f t.db; sqlite3 t.db 'create table t(a); insert into t values (1),(2); select sum(a) from t;'",
    ),
    "git status": Program(
        ("git",),
        """
        rm -rf repo; mkdir repo; cd repo; git init -q .
        for i in 1 2 3 4 5 6 7 8 9; do echo $i >file$i; done
        git add .; git -c user.name=a -c user.email=a@b commit -qm first
        echo more >>file3; git status --short
        """,
    ),
    "grep -r": Program(
        ("grep",), "mkdir -p t; for i in 1 2 3 4; do echo needle $i >t/$i; done; grep -r needle t"
    ),
    "python3": Program(
        ("/usr/bin/python3",),
        "/usr/bin/python3 -I -c 'import json; print(json.dumps({\"a\": list(range(9))}))'",
    ),
    "gcc": Program(("gcc",), "echo 'int main(void){return 0;}' >a.c; gcc -O1 -c a.c -o a.o; ls a.o"),
    "make": Program(
        ("make", "gcc"),
        r"printf 'all: a b\na b:\n\techo made >$@\n' >Makefile; rm -f a b; make; cat a b",
    ),
    "redis": Program(
        ("redis-server", "redis-benchmark", "redis-cli"),
        """
        rm -f s; redis-server --port 0 --unixsocket s --save '' --daemonize yes --dir "$PWD" >/dev/null
        while [ ! -S s ]; do sleep 0.05; done
        redis-benchmark -s s -c 1 -n 100 -t set,get --csv | wc -l; redis-cli -s s shutdown nosave
        """,
    ),
    "nginx": Program(
        ("/usr/sbin/nginx", "wrk"),
        """
        rm -rf n; mkdir -p n/html; echo hello >n/html/file
        for each in client_body proxy fastcgi uwsgi scgi; do echo "${each}_temp_path $PWD/n;"; done >n/places
        cat >n/conf <<END
        pid $PWD/n/pid; error_log $PWD/n/errors; user root; events { }
        http { access_log off; include $PWD/n/places; server { listen 127.0.0.1:18089; root $PWD/n/html; } }
END
        /usr/sbin/nginx -e "$PWD/n/errors" -p "$PWD/n" -c "$PWD/n/conf"
        wrk -t 1 -c 4 -d 1s --latency http://127.0.0.1:18089/file; kill $(cat n/pid)
        """,
        metrics="wrk",
    ),
    "postgres": Program(
        (f"{POSTGRES[-1]}/initdb", f"{POSTGRES[-1]}/pgbench", "setpriv") if POSTGRES else ("initdb",),
        """
        PATH="$BIN:$PATH"; chown -R postgres pg; chmod 700 pg/data
        as() { setpriv --reuid=postgres --regid=postgres --clear-groups "$@"; }
        as pg_ctl -D "$PWD/pg/data" -l "$PWD/pg/log" -w -o "-k $PWD/pg $SETTINGS" start >/dev/null
        pgbench -h "$PWD/pg" -U postgres -n -t 10 -c 1 postgres
        as pg_ctl -D "$PWD/pg/data" -w -m fast stop >/dev/null
        """,
        """
        PATH="$BIN:$PATH"; mkdir pg; chown postgres pg
        as() { setpriv --reuid=postgres --regid=postgres --clear-groups "$@"; }
        as initdb -D "$PWD/pg/data" -A trust -N --no-locale -E UTF8
        as pg_ctl -D "$PWD/pg/data" -l "$PWD/pg/log" -w -o "-k $PWD/pg $SETTINGS" start
        pgbench -h "$PWD/pg" -U postgres -i -s 1 -q postgres
        as pg_ctl -D "$PWD/pg/data" -w -m fast stop
        """,
        metrics="pgbench",
    ),
    "node": Program(("node",), "node -e 'console.log([3, 1, 2].sort().join())'"),
}


def missing(program: Program) -> str:
    return ", ".join(one for one in program.needs if shutil.which(one) is None)


@pytest.fixture
def work() -> Iterator[Path]:
    """A directory that every user may enter: a server gives up being root."""
    with tempfile.TemporaryDirectory(prefix="own-program-") as made:
        place = Path(made)
        place.chmod(0o755)
        yield place


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_is_captured_by_one_command_and_repeats_to_the_last_digit(
    name: str, work: Path, tmp_path: Path
) -> None:
    program = PROGRAMS[name]
    if absent := missing(program):
        pytest.skip(f"not installed: {absent} (setup/system-packages slow)")
    script = work / "run.sh"
    first, last = (f"set -e\ncd {work}\n{POSTGRES_WORDS}\n{words}\n" for words in program[1:3])
    subprocess.run(["sh", "-c", last], check=True, capture_output=True)
    script.write_text(first)
    environment = {**os.environ, "KTRIAL_STORE": str(tmp_path / "store" / "ktrial.db")}
    kernels = ("--kernel", "debian:6.1", "--kernel", "debian:6.12", "--perturbations", "1", "--memory", "1G")
    metrics = ("--metrics", program.metrics) if program.metrics else ()
    ran = ktrial(("compare", *kernels, *metrics, "--json", "--", "sh", str(script)), environment, work)
    assert ran.returncode == 0, ran.stderr
    compared = json.loads(ran.stdout)["comparisons"][0]
    assert compared["unit"] == ("1/s" if program.metrics else "instructions")
    least = 100 if program.metrics else 100_000
    assert compared["baseline_value"] > least
    assert compared["value"] > least
    again = ktrial(("replicate",), environment, tmp_path)
    assert again.returncode == 0, again.stdout + again.stderr
