"""Twenty-seven programs that nobody here had written for, each by one command (`tried_programs` tries them).

Each does little: QEMU takes twenty times as long as this machine. `prepare` makes its files once, here; the
command is what a guest does, and what is counted.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class TriedProgram:
    """One of them."""

    name: str
    needs: tuple[str, ...]
    """Programs that have to be installed."""
    command: tuple[str, ...]
    prepare: str = ":"
    """A script of the shell, in the program's own empty directory, where only root may look."""
    memory_mib: int = 0
    """More than its files need."""


def _shell(script: str) -> tuple[str, ...]:
    return ("sh", "-ec", script)


_TREE = """
for d in a b c d; do
    mkdir -p tree/$d
    for f in 1 2 3 4 5 6 7 8 9 10; do seq 1 $((f * 100)) >tree/$d/$f.txt; done
done
"""
_JAVA = """
cat >Main.java <<'END'
import java.util.*;
public class Main {
    public static void main(String[] a) {
        Map<Integer, String> m = new HashMap<>();
        for (int i = 0; i < 20000; i++) m.put(i, "v" + i);
        System.out.println(m.size());
    }
}
END
javac Main.java
"""
_NODE = """
cat >main.js <<'END'
const m = new Map();
for (let i = 0; i < 20000; i++) m.set(i, 'v' + i);
console.log(m.size);
END
"""
_GO_TEST = "env GOCACHE=$PWD/cache HOME=$PWD go test -count=1 -vet=off ."
_GO = (
    """
cat >go.mod <<'END'
module tried
go 1.19
END
cat >a_test.go <<'END'
package tried
import "testing"
func TestSum(t *testing.T) {
    s := 0
    for i := 0; i < 100000; i++ { s += i }
    if s != 4999950000 { t.Fatal(s) }
}
END
"""
    + _GO_TEST
)
_RUST = """
cat >main.rs <<'END'
fn main() { println!("{}", (0..1000u64).map(|x| x * x).sum::<u64>()); }
END
"""
_PERL = "my %h; $h{$_ % 1000} .= $_ for 1..50000; print scalar(keys %h), qq(\\n)"
_RUBY = "h = Hash.new(0); 20000.times { |i| h[i % 1000] += i }; puts h.size"
_PHP = "$h = []; for ($i = 0; $i < 50000; $i++) $h[$i % 1000] = $i; echo count($h), PHP_EOL;"
_LUA = "local h = {}; for i = 1, 50000 do h[i % 1000] = i end; print(#h)"
_GIT = f"""{_TREE}
git init -q repo
cp -r tree repo/
cd repo
git add .
git -c user.name=a -c user.email=a@b commit -qm a
"""
_STRESSORS = "cpu pipe fork futex mmap switch timer sem-sysv getdent fault"
"""`sem`, of POSIX, waits for ever in the version of Debian 12."""
_LMBENCH = """
for c in null read write stat open; do /opt/lmbench/lat_syscall -N 1 -W 0 $c /etc/passwd 2>&1; done
/opt/lmbench/lat_pipe -N 1 -W 0 2>&1
/opt/lmbench/lat_proc -N 1 -W 0 fork 2>&1
"""
_LTP_CASES = "getpid01 splice01 pipe01 fork01 mmap01 dup01 open01 read01 write01 futex_wait01"
_LTP = f"""
export TMPDIR=/tmp
for c in {_LTP_CASES}; do /opt/ltp/testcases/bin/$c || [ $? -eq 32 ]; done
"""
_HAPROXY = """
cat >h.cfg <<'END'
defaults
    mode http
    timeout connect 1s
    timeout client 1s
    timeout server 1s
frontend f
    bind 127.0.0.1:8881
    http-request return status 200 content-type text/plain string hello
END
"""
_NGINX = """
mkdir -p html
seq 1 100 >html/index.html
cat >nginx.conf <<END
user root;
worker_processes 1;
error_log stderr;
pid /tmp/tried-nginx.pid;
events { worker_connections 64; }
http { access_log off; server { listen 127.0.0.1:8882; root $PWD/html; } }
END
"""
_NGINX_RUN = """
nginx -c $PWD/nginx.conf
wrk -t1 -c2 -d1s http://127.0.0.1:8882/
kill $(cat /tmp/tried-nginx.pid)
"""
_MARIADB = """
mariadb-install-db --no-defaults --user=root --auth-root-authentication-method=normal --datadir=$PWD/data \\
    --skip-test-db --innodb-log-file-size=4M >/dev/null
"""
_MARIADB_RUN = """
rm -rf /tmp/tried-maria
cp -r data /tmp/tried-maria
mariadbd --no-defaults --user=root --datadir=/tmp/tried-maria --socket=/tmp/tried-maria.sock \\
    --skip-networking --innodb-log-file-size=4M --innodb-buffer-pool-size=8M \\
    --pid-file=/tmp/tried-maria.pid 2>/tmp/tried-maria.log &
until [ -S /tmp/tried-maria.sock ]; do sleep 0.1; done
to='--no-defaults --socket=/tmp/tried-maria.sock --user=root'
mariadb-slap $to --auto-generate-sql --number-of-queries=50
mariadb-admin $to shutdown
wait
"""
_POSTGRES = """
PATH=$(echo /usr/lib/postgresql/*/bin):$PATH
made=$(mktemp -d /tmp/tried-initdb-XXXXXX)
chown postgres $made
(cd $made && setpriv --reuid=postgres --regid=postgres --clear-groups \\
    initdb -D $made/data -U postgres --auth=trust --no-sync)
cp -r $made/data data
chown -R root data
rm -rf $made
"""
_POSTGRES_RUN = """
PATH=$(echo /usr/lib/postgresql/*/bin):$PATH
as='setpriv --reuid=postgres --regid=postgres --clear-groups'
rm -rf /tmp/tried-pg
cp -r data /tmp/tried-pg
chown -R postgres /tmp/tried-pg
chmod 700 /tmp/tried-pg
cd /tmp/tried-pg
$as postgres -D /tmp/tried-pg -k /tmp/tried-pg -c listen_addresses= -c shared_buffers=8MB -c fsync=off \\
    2>/tmp/tried-pg.log &
until psql -h /tmp/tried-pg -U postgres -c '' 2>/dev/null; do sleep 0.1; done
pgbench -h /tmp/tried-pg -U postgres -i -q postgres 2>&1
pgbench -h /tmp/tried-pg -U postgres -t 20 postgres
kill -INT $!
wait
"""
_IPERF = """
iperf3 -s -1 -p 8883 >/tmp/tried-iperf &
sleep 0.5
iperf3 -c 127.0.0.1 -p 8883 -n 4M
wait
"""
_HAPROXY_RUN = """
haproxy -f h.cfg &
sleep 0.5
ab -q -n 100 http://127.0.0.1:8881/
kill $!
wait || :
"""
_MEMCACHED_RUN = """
memcached -u root -l 127.0.0.1 -p 8884 -t 1 -m 16 &
sleep 0.5
memcslap --servers=127.0.0.1:8884 --concurrency=1 --execute-number=100
kill $!
wait || :
"""
_FFMPEG = (
    *("ffmpeg", "-loglevel", "error", "-y", "-f", "lavfi"),
    *("-i", "testsrc=duration=1:size=160x120:rate=10", "-c:v", "mpeg4", "/tmp/tried.avi"),
)
_RSYNC_RUN = "rm -rf /tmp/tried-to; rsync -a tree/ /tmp/tried-to/"
_GIT_RUN = """
rm -rf /tmp/tried-git
git clone -q --no-local repo /tmp/tried-git
git -C /tmp/tried-git gc -q
"""
_DBENCH = ("dbench", "-c", "load.txt", "-t", "1", "-D", "/tmp", "1")
_FIO = ("fio", "--name=a", "--filename=/tmp/tried-fio", "--size=4M", "--rw=randread", "--ioengine=psync")
_ALL = (
    TriedProgram("java", ("java", "javac"), ("java", "-cp", ".", "Main"), _JAVA),
    TriedProgram("node", ("node",), ("node", "main.js"), _NODE),
    TriedProgram("go test", ("go",), _shell(_GO_TEST), _GO),
    TriedProgram(
        "rustc", ("/usr/bin/rustc", "cc"), ("/usr/bin/rustc", "-o", "/tmp/tried-rs", "main.rs"), _RUST
    ),
    TriedProgram("perl", ("perl",), ("perl", "-e", _PERL)),
    TriedProgram("ruby", ("ruby",), ("ruby", "-e", _RUBY)),
    TriedProgram("php", ("php",), ("php", "-r", _PHP)),
    TriedProgram("lua", ("lua5.4",), ("lua5.4", "-e", _LUA)),
    TriedProgram("ffmpeg", ("ffmpeg",), _FFMPEG),
    TriedProgram(
        "ImageMagick",
        ("convert",),
        ("convert", "-size", "128x128", "gradient:red-blue", "-blur", "0x2", "/tmp/tried.png"),
    ),
    TriedProgram("rsync", ("rsync",), _shell(_RSYNC_RUN), _TREE),
    TriedProgram("tar, zstd", ("tar", "zstd"), ("tar", "--zstd", "-cf", "/tmp/tried.tar.zst", "tree"), _TREE),
    TriedProgram("ripgrep", ("rg",), ("rg", "-c", "42", "tree"), _TREE),
    TriedProgram("git clone, gc", ("git",), _shell(_GIT_RUN), _GIT),
    TriedProgram(
        "openssl speed",
        ("openssl",),
        ("openssl", "speed", "-elapsed", "-seconds", "1", "-bytes", "1024", "sha256"),
    ),
    TriedProgram(
        "stress-ng (10)",
        ("stress-ng",),
        _shell(f"for s in {_STRESSORS}; do stress-ng -q --$s 1 --$s-ops 20 --mmap-bytes 1M; done"),
    ),
    TriedProgram("lmbench", ("/opt/lmbench/lat_syscall",), _shell(_LMBENCH)),
    TriedProgram("sysbench", ("sysbench",), ("sysbench", "cpu", "--events=20", "--time=0", "run")),
    TriedProgram("iperf3", ("iperf3",), _shell(_IPERF)),
    TriedProgram("haproxy", ("haproxy", "ab"), _shell(_HAPROXY_RUN), _HAPROXY),
    TriedProgram("memcached", ("memcached", "memcslap"), _shell(_MEMCACHED_RUN)),
    TriedProgram(
        "mariadb",
        ("mariadbd", "mariadb-slap", "mariadb-install-db"),
        _shell(_MARIADB_RUN),
        _MARIADB,
        memory_mib=1024,
    ),
    TriedProgram(
        "postgres, pgbench",
        ("psql", "pgbench", "setpriv"),
        _shell(_POSTGRES_RUN),
        _POSTGRES,
        memory_mib=1024,
    ),
    TriedProgram("nginx, wrk", ("nginx", "wrk"), _shell(_NGINX_RUN), _NGINX),
    TriedProgram("dbench", ("dbench",), _DBENCH, "head -n 2000 /usr/share/dbench/client.txt >load.txt"),
    TriedProgram("fio", ("fio",), _FIO),
    TriedProgram("LTP (10)", ("/opt/ltp/testcases/bin/getpid01",), _shell(_LTP)),
)
TRIED = {program.name: program for program in _ALL}
