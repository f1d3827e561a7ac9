"""The sandbox is the worker's second barrier. Code that escapes from Lua cannot access anything, because the process
is confined."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from struct import Struct

import pytest

from appliance.lua_worker.confinement import ALLOW, KILL, NO_SUCH_CALL, REFUSE, build_filter
from tests.fakes.rows import each_row
from tests.lua.bench import TRIVIAL, open_pool, run

pytestmark = pytest.mark.usefixtures("whole_workers")

ESCAPED = r"""
import ctypes, importlib, json, os, resource, signal, socket, sys, threading, time, traceback

sys.path[:0] = json.loads(sys.argv[2])
from appliance.lua_worker.confinement import confine

victim, folder = int(sys.argv[1]), sys.argv[3]
hub = socket.socket(fileno=0)
libc = ctypes.CDLL(None, use_errno=True)
machine = os.uname().machine


class Span(ctypes.Structure):  # Python 3.14 imports the module of its layout here
    _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]


missing = confine(os.getppid(), 4 << 30)
reached, kept = [], []


def attempt(name, action):
    try:
        result = action()
    except BaseException:
        return
    if not (isinstance(result, int) and not isinstance(result, bool) and result < 0):
        reached.append(name)


def keep(name, action):
    try:
        action()
    except BaseException as error:
        kept.append(f"{name}: {error!r}")


buffer = ctypes.create_string_buffer(64)
span = ctypes.byref(Span(ctypes.addressof(buffer), 64))
numbers = {"x86_64": (310, 311, 434, 425, 319, 435, 56), "aarch64": (270, 271, 434, 425, 279, 435, 220)}
readv, writev, pidfd_open, io_uring, memfd, clone3, clone = numbers[machine]
attempt("read the hub's memory", lambda: libc.syscall(readv, victim, span, 1, span, 1, 0))
attempt("write the hub's memory", lambda: libc.syscall(writev, victim, span, 1, span, 1, 0))
attempt("attach to the hub", lambda: libc.ptrace(16, victim, 0, 0))
attempt("open the hub's memory", lambda: open(f"/proc/{victim}/mem", "rb"))
attempt("list the hub's files", lambda: os.listdir(f"/proc/{victim}/fd"))
attempt("read a file", lambda: open(folder + "/secret"))
attempt("write a file", lambda: os.open(folder + "/new", os.O_CREAT | os.O_WRONLY))
attempt("rename", lambda: os.rename(folder + "/secret", folder + "/other"))
attempt("remove", lambda: os.unlink(folder + "/secret"))
attempt("remove a folder", lambda: os.rmdir(folder + "/empty"))
attempt("make a folder", lambda: os.mkdir(folder + "/made"))
attempt("make a link", lambda: os.symlink("/", folder + "/link"))
attempt("change the mode", lambda: os.chmod(folder + "/secret", 0o777))
attempt("change the times", lambda: os.utime(folder + "/secret", (0, 0)))
attempt("truncate", lambda: os.truncate(folder + "/secret", 0))
attempt("list a folder", lambda: os.listdir(folder))
attempt("look at a file", lambda: os.stat(folder + "/secret"))
attempt("go to a folder", lambda: os.chdir(folder))
attempt("fork", os.fork)
attempt("fork in C", lambda: libc.fork())
attempt("clone a process", lambda: libc.syscall(clone, 17, 0, 0, 0, 0))
attempt("clone3 a process", lambda: libc.syscall(clone3, buffer, 64))
attempt("exec", lambda: os.execv("/bin/sh", ["sh", "-c", "exit 3"]))
attempt("spawn", lambda: os.posix_spawn("/bin/sh", ["sh"], {}))
attempt("socket of the Internet", lambda: socket.socket(socket.AF_INET))
attempt("socket of the box", lambda: socket.socket(socket.AF_UNIX))
attempt("pair of sockets", socket.socketpair)
attempt("pipe", os.pipe)
attempt("file in memory", lambda: libc.syscall(memfd, b"x", 0))
attempt("receive a descriptor", lambda: hub.recvmsg(10, 100, socket.MSG_DONTWAIT))
attempt("another descriptor", lambda: os.dup(0))
attempt("kill the hub", lambda: os.kill(victim, 0))
attempt("signal its group", lambda: os.killpg(os.getpgid(victim), 0))
attempt("signal a thread of the hub", lambda: libc.tgkill(victim, victim, 0))
attempt("file of the hub's process", lambda: libc.syscall(pidfd_open, victim, 0))
attempt("ring of requests", lambda: libc.syscall(io_uring, 8, buffer))
attempt("limits of the hub", lambda: resource.prlimit(victim, resource.RLIMIT_NOFILE))
attempt("lift a limit", lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (10, 10)))
attempt("priority of the hub", lambda: os.setpriority(os.PRIO_PROCESS, victim, 5))
attempt("another user", lambda: os.setuid(1))
attempt("another namespace", lambda: libc.unshare(0x10000000))
attempt("mount", lambda: libc.mount(b"x", folder.encode(), b"tmpfs", 0, 0))
attempt("shared memory", lambda: libc.shmget(7, 4096, 0o1600))
attempt("lift the filter", lambda: libc.prctl(22, 0, 0))
attempt("be dumped", lambda: libc.prctl(4, 1, 0, 0, 0))
attempt("trace me", lambda: libc.ptrace(0, 0, 0, 0))
attempt("set the clock", lambda: time.clock_settime(time.CLOCK_REALTIME, 0))
attempt("name of the box", lambda: socket.sethostname("x"))
attempt("set a timer", lambda: signal.setitimer(signal.ITIMER_REAL, 60))
attempt("import", lambda: importlib.import_module("sqlite3"))

ended = threading.Event()
keep("thread", lambda: threading.Thread(target=ended.set).start() or ended.wait(20))
keep("memory", lambda: bytearray(64 << 20))
keep("random bytes", lambda: os.urandom(8))
keep("time", lambda: (time.time(), time.monotonic(), time.thread_time(), time.localtime(), time.sleep(0.001)))
keep("signals", lambda: signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM}))
keep("texts", lambda: "é".encode("utf-8").decode("utf-8"))
keep("traceback", lambda: traceback.format_exc())
hub.sendall(json.dumps([missing, reached, kept]).encode())
os.abort()
"""


def test_escaped_code_reaches_nothing_and_lua_still_works(tmp_path: Path) -> None:
    assert judge_escape([sys.executable], sys.path, tmp_path) == -signal.SIGABRT


def judge_escape(python: Sequence[str | Path], path: Sequence[str], folder: Path) -> int:
    """Run the program in this Python, with the modules in `path`. Check that each forbidden access fails. Return the
    exit code of the program's `abort`."""
    (folder / "secret").write_text("secret")
    (folder / "empty").mkdir()
    before = _names_in(folder)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        arguments = ["-c", ESCAPED, str(os.getpid()), json.dumps(path), str(folder)]
        with subprocess.Popen([*python, *arguments], stdin=theirs.fileno()) as process:
            theirs.close()
            ours.settimeout(60)
            answer = ours.recv(1 << 16)
            ended = process.wait(60)
    assert json.loads(answer) == [[], [], []]
    assert _names_in(folder) == before
    assert (folder / "secret").read_text() == "secret"
    return ended


def _names_in(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


async def test_a_worker_is_confined_before_it_runs_lua() -> None:
    async with open_pool() as pool:
        await run(pool, TRIVIAL)
        [worker] = pool.figures()["workers"]
        process = Path(f"/proc/{worker['pid']}")
        status = dict(line.split(":\t") for line in (process / "status").read_text().splitlines())
        limits = {line[:26].strip(): line[26:].split()[0] for line in (process / "limits").read_text().splitlines()}
        nice = int((process / "stat").read_text().rsplit(") ", 1)[1].split()[16])
        if os.geteuid() == 0:  # only root can read a process that is not dumpable
            opened = {each.name: each.readlink().name for each in (process / "fd").iterdir()}
            del opened["0"]
            # libffi 3.5 reads its own file
            assert all(name.startswith("libffi.so") for name in opened.values()), opened
            assert (process / "environ").read_bytes() == b""
            assert str((process / "cwd").readlink()) == "/"
    assert worker["confinement"] == "complete" and worker["resident_bytes"] > 1 << 20
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
    assert [limits[each] for each in ("Max open files", "Max file size", "Max core file size")] == ["0", "0", "0"]
    assert int(limits["Max address space"]) < 4 << 30 and limits["Max processes"] != "unlimited"
    assert nice >= min(19, os.getpriority(os.PRIO_PROCESS, 0) + 10) or nice == 10


@pytest.mark.slow
def test_no_other_process_can_read_the_hubs_memory() -> None:
    judge_protection([sys.executable])


def judge_protection(python: Sequence[str | Path], path: Sequence[str] = ()) -> None:
    """Run this Python with the modules in `path`, and check that the hub's memory is protected."""
    code = (
        f"import ctypes, sys; sys.path[:0] = {path!r}\n"
        "from appliance.cli.process.memory_protection import protect_memory as p\n"
        "print(p(), ctypes.CDLL(None).prctl(3))"
    )
    ended = subprocess.run([*python, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert ended.stdout == "True 0\n"


def test_without_ctypes_lua_runs_and_the_missing_barrier_is_reported(tmp_path: Path) -> None:
    (tmp_path / "ctypes.py").write_text("raise ImportError")
    code = (
        "import sys, os; sys.path[:0] = [sys.argv[1]]\n"
        "from appliance.lua_worker.confinement import confine, trim_memory\n"
        "print(confine(os.getppid(), 4 << 30)); trim_memory()"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, timeout=60, check=True
    )
    assert "ctypes, which is missing" in ended.stdout


_STEP = Struct("=HBBI")
_DATA = Struct("=iIQ6Q")


def interpret(program: bytes, number: int, architecture: int, first: int = 0) -> int:
    """Return the result of the filter for a system call, according to the rules of classic BPF."""
    data = _DATA.pack(number, architecture, 0, first, *[0] * 5)
    steps, at, value = list(_STEP.iter_unpack(program)), 0, 0
    while True:
        code, if_true, if_false, operand = steps[at]
        at += 1
        if code == 0x20:
            value = int.from_bytes(data[operand : operand + 4], sys.byteorder)
        elif code == 0x54:
            value &= operand
        elif code == 0x15:
            at += if_true if value == operand else if_false
        elif code == 0x35:
            at += if_true if value >= operand else if_false
        else:
            assert code == 0x06
            return int(operand)


THREAD_OF_GLIBC, THREAD_OF_MUSL, FORK, VFORK = 0x3D0F00, 0x7D0F00, 17, 0x4111
X86_64, AARCH64, I386 = 0xC000003E, 0xC00000B7, 0x40000003
CALLS: tuple[tuple[str, int, int, int, int], ...] = (
    ("a thread of glibc", 56, 220, THREAD_OF_GLIBC, ALLOW),
    ("a thread of musl", 56, 220, THREAD_OF_MUSL, ALLOW),
    ("fork", 56, 220, FORK, REFUSE),
    ("vfork", 56, 220, VFORK, REFUSE),
    ("a thread in a namespace", 56, 220, THREAD_OF_GLIBC | 0x10000000, REFUSE),
    ("tgkill itself", 234, 131, 77, ALLOW),
    ("tgkill another", 234, 131, 78, REFUSE),
    ("tgkill itself, with an upper half", 234, 131, 77 | 1 << 40, ALLOW),
    ("clone3", 435, 435, 0, NO_SUCH_CALL),
    ("io_uring_setup", 425, 425, 0, NO_SUCH_CALL),
    ("pidfd_send_signal", 424, 424, 0, NO_SUCH_CALL),
    ("one of tomorrow", 9999, 9999, 0, NO_SUCH_CALL),
    ("one of x32", 0x40000000 + 45, 0x40000000 + 45, 0, KILL),
    ("a negative number", -1, -1, 0, KILL),
)
"""Each row: a system call, its numbers on x86_64 and aarch64, its first argument, and the filter's result in process
77."""


@each_row(("machine", "architecture"), [("x86_64", X86_64), ("aarch64", AARCH64)])
def test_the_filter_answers_each_call_on_each_architecture(machine: str, architecture: int) -> None:
    program = build_filter(machine, 77)
    assert program is not None and len(program) // 8 < 4096
    found = {
        name: interpret(program, x86_64 if machine == "x86_64" else aarch64, architecture, first)
        for name, x86_64, aarch64, first, _ in CALLS
    }
    assert found == {name: expected for name, *_, expected in CALLS}
    for other in {X86_64, AARCH64, I386, 0x40000028} - {architecture}:
        assert interpret(program, 202, other) == KILL


def test_an_unlisted_architecture_has_no_filter() -> None:
    assert build_filter("armv7l", 77) is None
