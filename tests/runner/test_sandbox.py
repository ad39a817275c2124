"""The walls, each tried from inside by a real child. A host without a wall skips its test and says
why.
"""

import errno
import functools
import json
import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from runner.sandbox import Limits, Room, Walls, cgroup_for, end, enter, probe, uid_for

ROOT = Path(__file__).parents[2]
MIB = 1024 * 1024


def needs(*names: str) -> Walls:
    """The host's walls, or a skip that says which of `names` it lacks."""
    walls = probe()
    lacking = [line for line in walls.missing() if line.split(":")[0] in names]
    if lacking:
        pytest.skip("; ".join(lacking))
    return walls


def inside(
    body: Callable[[], object], walls: Walls, limits: Limits | None = None, **room
) -> object:
    """What `body` returns (as JSON) when it runs behind the walls; an exception of its own as
    'raised Type: text'.
    """
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        room["descriptors"] = (0, 1, 2, writing, *room.get("descriptors", ()))
        _answer(body, writing, functools.partial(enter, walls, limits or Limits(), Room(**room)))
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        answer = file.read()
    end(pid)
    os.waitpid(pid, 0)
    return json.loads(answer)


def _answer(body: Callable[[], object], writing: int, first: Callable[[], None]) -> None:
    try:
        first()
        answer = body()
    except BaseException as error:  # noqa: BLE001 - every end of the child must be told to the test
        answer = f"raised {type(error).__name__}: {error}"
    os.write(writing, json.dumps(answer).encode())
    os._exit(0)


def in_a_script(script: str, walls: Walls, **room) -> str:
    """The output of a fresh Python (the judge's own) that runs `script` behind the walls."""

    def run() -> str:
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=False
        )
        return done.stdout + done.stderr[-2000:]

    return str(inside(run, walls, **room))


def refused(action: Callable[[], object]) -> str:
    """The name of the error that an action of the candidate ends in, or 'done'."""
    try:
        action()
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, str(error))
    return "done"


def test_the_candidate_is_another_user_with_no_way_back():
    walls = needs("other_uid")
    uid, back = inside(lambda: [os.getuid(), refused(lambda: os.setuid(0))], walls)
    assert uid not in (0, os.getuid())
    assert back == "EPERM"


def test_two_candidates_are_two_users():
    walls = needs("other_uid")
    if uid_for(os.getpid()) == uid_for(1):
        pytest.skip("this host maps too few users")
    assert inside(os.getuid, walls) != inside(os.getuid, walls)


def test_no_capability_is_left_or_can_be_gained():
    status = inside(
        lambda: Path("/proc/self/status").read_text(), needs("other_uid", "no_new_privs")
    )
    lines = dict(line.split(":", 1) for line in status.splitlines())
    assert {lines[name].strip() for name in ("CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
    assert lines["NoNewPrivs"].strip() == "1"


def test_a_server_of_the_host_can_not_be_reached():
    walls = needs("network")
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        socket.create_connection(address).close()
        answer = inside(
            lambda: refused(lambda: socket.create_connection(address, timeout=5)), walls
        )
    assert answer == "ENETUNREACH"


def test_an_abstract_socket_of_the_host_can_not_be_reached():
    walls = needs("network")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"\0kbx-test-{os.getpid()}")
        server.listen()
        client = socket.socket(socket.AF_UNIX)
        assert (
            inside(lambda: refused(lambda: client.connect(server.getsockname())), walls) != "done"
        )
        client.close()


def test_a_secret_elsewhere_on_the_host_is_not_there(tmp_path):
    walls = needs("mount")
    canary = tmp_path / "canary"
    canary.write_text("a secret")
    canary.chmod(0o644)
    assert inside(lambda: refused(canary.read_bytes), walls) == "ENOENT"


def test_of_the_project_only_the_judge_is_in_sight():
    walls = needs("mount")
    seen = inside(lambda: sorted(os.listdir(ROOT)) + sorted(os.listdir(ROOT / "runner")), walls)
    assert not {".git", ".env", "manage.py", "kbx_site", "tests", "models.py", "commands"} & set(
        seen
    )
    assert "sandbox" in seen


def test_extra_paths_are_shown_read_only_and_writable_ones_can_be_written(tmp_path):
    walls = needs("mount")
    shown, shared = tmp_path / "shown", tmp_path / "shared"
    for folder in (shown, shared):
        folder.mkdir()
        folder.chmod(0o777)
    (shown / "input").write_text("data")

    def use() -> list[str]:
        (shared / "output").write_text("answer")
        return [(shown / "input").read_text(), refused(lambda: (shown / "new").write_text("x"))]

    assert inside(use, walls, readable=(shown,), writable=(shared,)) == ["data", "EROFS"]
    assert (shared / "output").read_text() == "answer"


@pytest.mark.parametrize(
    "place", ["/", "/usr/bin", "/etc", "/sys", "/dev", os.path.dirname(os.__file__)]
)
def test_nothing_outside_tmp_can_be_written(place):
    walls = needs("mount")
    assert inside(lambda: refused(lambda: Path(f"{place}/new").write_text("x")), walls) in (
        "EROFS",
        "EACCES",
    )


def test_what_is_written_to_tmp_is_gone_afterwards():
    walls = needs("mount")
    name = f"/tmp/kbx-trace-{os.getpid()}"
    assert inside(lambda: Path(name).write_text("x"), walls) == 1
    assert not os.path.exists(name)
    assert inside(lambda: os.path.exists(name), walls) is False


def test_tmp_and_shared_memory_together_are_capped():
    walls = needs("mount")

    def fill() -> list[object]:
        written = 0
        with open("/tmp/a", "wb") as first, open("/dev/shm/b", "wb") as second:
            try:
                for file in (first, second):
                    for _ in range(12):
                        file.write(b"x" * MIB)
                        file.flush()
                        written += 1
            except OSError as error:
                return [written, errno.errorcode[error.errno]]
        return [written, "done"]

    written, error = inside(fill, walls, Limits(tmp=16 * MIB))
    assert error == "ENOSPC"
    assert 12 <= written <= 16


def test_the_environment_is_an_allow_list(monkeypatch):
    walls = probe()
    monkeypatch.setenv("KBX_DATABASE_URL", "postgres://secret")
    monkeypatch.setenv("LD_PRELOAD_TEST", "x")
    seen = inside(lambda: dict(os.environ), walls, environment={"TRITON_INTERPRET": "1"})
    assert not {"KBX_DATABASE_URL", "LD_PRELOAD_TEST", "SSH_AUTH_SOCK"} & set(seen)
    assert seen["TRITON_INTERPRET"] == "1"
    assert seen["TRITON_CACHE_DIR"].startswith(seen["TMPDIR"])


def test_the_host_has_no_name_inside():
    walls = needs("mount", "network")
    assert inside(lambda: [os.uname().nodename, socket.gethostname()], walls) == ["candidate"] * 2
    assert socket.gethostname() != "candidate"


def test_the_strings_of_the_first_environment_are_wiped():
    script = """
import ctypes, os
from runner.sandbox import Limits, Room, enter, probe
fields = open('/proc/self/stat').read().rpartition(')')[2].split()
start, size = int(fields[47]), int(fields[48]) - int(fields[47])
found = b'a-secret' in ctypes.string_at(start, size)
walls = probe()
if os.fork() == 0:
    enter(walls, Limits())
    print(found, b'a-secret' in ctypes.string_at(start, size), flush=True)
    os._exit(0)
os.wait()
"""
    environment = {**os.environ, "KBX_TOKEN": "a-secret"}
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["True", "False"]


def test_the_judge_can_be_neither_seen_nor_killed():
    walls = needs("pid", "mount")
    judge = os.getpid()

    def try_it() -> list[object]:
        pids = sorted(int(name) for name in os.listdir("/proc") if name.isdigit())
        return [
            pids,
            refused(lambda: os.kill(judge, 0)),
            refused(lambda: os.kill(1, signal.SIGKILL)),
        ]

    pids, kill, kill_init = inside(try_it, walls)
    assert len(pids) == 1  # itself: its namespace's pid 1 is another user's, and hidden
    assert kill == "ESRCH"
    # Over a user namespace pid 1 has the candidate's own uid; the kernel drops the signal instead,
    # and that the answer came shows it: with its pid 1 the namespace would have ended.
    assert kill_init == ("done" if walls.user_namespace else "EPERM")


def test_without_a_pid_namespace_the_judge_is_still_another_user():
    walls = needs("other_uid", "mount").without("pid", "for the test")
    judge = os.getpid()

    def try_it() -> list[str]:
        memory = refused(lambda: os.open(f"/proc/{judge}/mem", os.O_RDONLY))
        return [
            memory,
            refused(Path(f"/proc/{judge}/environ").read_bytes),
            refused(lambda: os.kill(judge, 0)),
        ]

    memory, environ, kill = inside(try_it, walls)
    assert {memory, environ} <= {"ENOENT", "EACCES", "EPERM"}
    assert kill == "EPERM"


def test_forbidden_system_calls_are_refused():
    walls = needs("seccomp")

    def try_it() -> list[str]:
        import ctypes

        libc = ctypes.CDLL(None, use_errno=True)
        calls = (
            lambda: libc.ptrace(0, 0, 0, 0),
            lambda: libc.unshare(0x10000000),
            lambda: libc.mount(b"none", b"/tmp", b"tmpfs", 0, None),
        )
        return [errno.errorcode[ctypes.get_errno()] if call() < 0 else "done" for call in calls]

    assert inside(try_it, walls) == ["EPERM"] * 3


def test_a_fork_bomb_meets_its_limit():
    walls = needs("rlimits")

    def bomb() -> list[object]:
        children = 0
        while children < 100:
            try:
                pid = os.fork()
            except OSError as error:
                return [children, errno.errorcode[error.errno]]
            if pid == 0:
                signal.pause()
                os._exit(0)
            children += 1
        return [children, "done"]

    children, error = inside(bomb, walls, Limits(processes=10))
    assert error == "EAGAIN"
    assert children <= 10


def test_memory_is_capped_by_the_address_space_where_that_is_asked():
    def take() -> str:
        try:
            return str(len(bytearray(2048 * MIB)))
        except MemoryError:
            return "MemoryError"

    assert inside(take, probe(), Limits(memory=1024 * MIB, address_space=True)) == "MemoryError"


def test_limits_on_files_and_time_are_set():
    kinds = (
        resource.RLIMIT_CPU,
        resource.RLIMIT_FSIZE,
        resource.RLIMIT_NOFILE,
        resource.RLIMIT_CORE,
    )
    limits = Limits(cpu_seconds=7, file=3 * MIB, open_files=99)
    seen = inside(lambda: [resource.getrlimit(kind) for kind in kinds], probe(), limits)
    assert seen == [[7, 7], [3 * MIB, 3 * MIB], [99, 99], [0, 0]]


def test_an_inherited_descriptor_is_closed():
    secret = os.open(__file__, os.O_RDONLY)
    try:
        assert inside(lambda: refused(lambda: os.read(secret, 1)), probe()) == "EBADF"
        assert inside(lambda: len(os.read(secret, 1)), probe(), descriptors=(secret,)) == 1
    finally:
        os.close(secret)


@pytest.mark.parametrize(
    ("last_act", "expected"), [(lambda: os._exit(3), 3), (os.abort, -signal.SIGABRT)]
)
def test_the_child_ends_as_the_candidate_did(last_act, expected):
    walls = probe()
    pid = os.fork()
    if pid == 0:
        enter(walls, Limits())
        last_act()
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == expected


def test_killing_the_child_ends_whoever_it_started():
    walls = needs("other_uid")
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        enter(walls, Limits(), Room(descriptors=(writing,)))
        if os.fork() == 0:
            os.setsid()  # out of the group: a killpg would miss it
            os.write(writing, b"x")
            signal.pause()
        signal.pause()
        os._exit(0)
    os.close(writing)
    assert os.read(reading, 1) == b"x"
    end(pid)
    os.waitpid(pid, 0)
    assert os.read(reading, 1) == b""  # end of file: nobody holds the other end any more
    os.close(reading)


def test_a_promised_wall_that_fails_is_an_error_before_anything_runs(tmp_path):
    walls = replace(probe(), mount=True)
    if not probe().mount:
        assert "SandboxError" in inside(lambda: "ran", walls)
        return
    answer = inside(lambda: "ran", walls, writable=(tmp_path / "absent",))
    assert answer.startswith("raised SandboxError: the sandbox failed at its mount wall")
    assert "absent" in answer


def test_modules_that_were_not_imported_yet_can_be():
    script = "import sqlite3, torch.nn, torch.special; print(torch.ones(3).sum().item())"
    assert in_a_script(script, needs("mount")) == "3.0\n"


def test_a_triton_kernel_runs_in_the_interpreter(tmp_path):
    script = tmp_path / "kernel.py"
    script.write_text("""
import torch, triton, triton.language as tl

@triton.jit
def double(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)

x = torch.arange(10.0)
y = torch.empty_like(x)
double[(1,)](x, y, 10, BLOCK=16)
print(y.tolist() == (2 * x).tolist())
""")
    walls = needs("mount")
    run = f"exec(compile(open({str(script)!r}).read(), {str(script)!r}, 'exec'))"
    assert (
        in_a_script(run, walls, readable=(script,), environment={"TRITON_INTERPRET": "1"})
        == "True\n"
    )


def test_a_c_compiler_works_and_its_library_loads():
    walls = needs("mount")
    script = """
import ctypes, subprocess, sysconfig
open('stub.c', 'w').write('#include <Python.h>\\nint answer(void) { return 42; }')
include = sysconfig.get_paths()['include']
subprocess.run(['cc', '-shared', '-fPIC', '-I', include, 'stub.c', '-o', 'stub.so'], check=True)
print(ctypes.CDLL('./stub.so').answer())
"""
    assert in_a_script(script, walls) == "42\n"


def test_a_cgroup_limits_memory_and_ends_its_processes():
    walls = needs("cgroup")
    group = cgroup_for(f"test-{os.getpid()}", Limits(memory=256 * MIB))
    pid = os.fork()
    if pid == 0:
        enter(walls, Limits(), Room(cgroup=group))
        block = bytearray(1024 * MIB)
        block[::4096] = b"x" * len(block[::4096])
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert status == -signal.SIGKILL
    assert group.out_of_memory()
    group.remove()
    assert not group.path.exists()


def test_probe_says_for_each_missing_wall_why_and_what_to_do():
    walls = probe()
    for line in walls.missing():
        assert "; to get it, " in line
        assert "not tried" not in line
    assert json.loads(json.dumps(walls.to_json()))["minimum"] == walls.minimum


def test_the_minimum_needs_another_user_no_network_and_limits():
    enough = Walls(other_uid=True, network=True, rlimits=True, no_new_privs=True)
    assert enough.minimum
    for name in ("other_uid", "network", "rlimits", "no_new_privs"):
        assert not enough.without(name, "test").minimum
    with pytest.raises(ValueError, match="no wall is called 'walls'"):
        enough.without("walls", "test")


def test_an_unprivileged_judge_stands_on_user_namespaces():
    """Probe and judgement where the judge is not root: the same walls, over a user namespace."""
    if os.getuid() != 0:
        pytest.skip("the other tests of this file already run without root")
    script = f"""
import os, sys
os.setresgid(54321, 54321, 54321); os.setresuid(54321, 54321, 54321)
import json
from runner.sandbox import Limits, enter, probe
walls = probe()
if os.fork() == 0:
    enter(walls, Limits())
    seen = os.path.exists({str(ROOT / "tests")!r})
    print(json.dumps([walls.to_json(), os.listdir('/'), seen]), flush=True)
    os._exit(0)
os.wait()
"""
    outer = (
        needs("mount")
        .without("pid", "the judge is walled in")
        .without("seccomp", "it makes namespaces itself")
    )

    def as_another_user() -> str:
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=False
        )
        return done.stdout + done.stderr[-1000:]

    # A view of the host without another user: a Python under /root could not be read by one
    # otherwise.
    answer = inside(
        as_another_user, outer.without("other_uid", "").without("network", "").without("ipc", "")
    )
    assert str(answer).startswith("["), answer
    walls, top, tests = json.loads(answer)
    if not walls["user_namespace"] or not walls["mount"]:
        pytest.skip(f"no unprivileged user namespaces here: {walls['reasons']}")
    assert walls["minimum"]
    assert not tests
    assert "home" not in top
