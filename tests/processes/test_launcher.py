"""Starting the leader of a run: what it gets, what it does not get, and that a failed start leaves nothing."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import trio

from supervisor.launchers import local
from supervisor.runtime.containment import marks
from tests.house import PATIENCE, eventually, fds
from tests.processes.stage import Stage

ROOT = Path(__file__).parents[2]


async def test_a_run_gets_its_arguments_and_leads_a_session_of_its_own(stage: Stage) -> None:
    tell = "import os, sys; print(sys.argv, os.getpid(), os.getsid(0), os.getpgid(0), os.getcwd())"
    leader = stage.python(tell, "a b", "")
    assert await stage.all(leader) == f"['-c', 'a b', ''] {leader.pid} {leader.pid} {leader.pid} {stage.room}\n"
    assert await leader.wait() == 0
    assert leader.pgid == leader.pid


async def test_its_first_word_stays_as_given(stage: Stage) -> None:
    leader = stage.run("cat", "/proc/self/cmdline")
    assert await stage.all(leader) == "cat\0/proc/self/cmdline\0"


async def test_it_inherits_nothing_but_its_three_descriptors(stage: Stage) -> None:
    extra = os.dup(0)
    try:
        os.set_inheritable(extra, True)
        leader = stage.python("import os; print(sorted(os.listdir('/proc/self/fd')))")
        # the fourth is the one that lists
        assert await stage.all(leader) == "['0', '1', '2', '3']\n"
    finally:
        os.close(extra)


async def test_its_environment_is_exactly_what_it_was_given(stage: Stage) -> None:
    given = {"a.b": "1", "BASH_FUNC_x%%": "() { :; }", "EMPTY": "", "TWO": "line\nline", "UMLAUT": "ü"}
    tell = "import os; [print(repr(entry)) for entry in sorted(os.environ.items())]"
    leader = stage.python(tell)
    bare = await stage.all(leader)
    await leader.wait()
    leader = stage.run(sys.executable, "-ISc", tell, env=given)
    full = await stage.all(leader)
    assert {line for line in full.splitlines() if line not in bare.splitlines()} == {repr(one) for one in given.items()}
    # LC_CTYPE is Python's own doing in the C locale
    assert {eval(line)[0] for line in bare.splitlines()} - {"LC_CTYPE"} == {"PATH", marks.VARIABLE}  # noqa: S307  it printed them


async def test_exit_status_and_signal_are_the_programs_own(stage: Stage) -> None:
    for status in (0, 7, 125, 126, 127):
        leader = stage.run("sh", "-c", f"exit {status}")
        assert await leader.wait() == status
        assert leader.failure is None
        await stage.cell().emptied()
    leader = stage.run("sh", "-c", "kill -SEGV $$")
    assert await leader.wait() == -signal.SIGSEGV


async def test_waiting_survives_cancellation_and_serves_several(stage: Stage) -> None:
    leader = stage.run("cat")
    with trio.move_on_after(0.05):
        await leader.wait()
    codes: list[int] = []

    async def one() -> None:
        codes.append(await leader.wait())

    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(one)
            await trio.testing.wait_all_tasks_blocked()
            await leader.stdin.aclose()
    assert codes == [0, 0, 0]
    leader.signal(signal.SIGTERM)  # gone: no error


async def test_closing_its_stdin_is_an_end_of_file(stage: Stage) -> None:
    leader = stage.run("cat")
    await leader.stdin.send_all(b"words\n")
    await leader.stdin.aclose()
    assert await stage.all(leader) == "words\n"


async def test_nobody_writes_into_anothers_stdout(stage: Stage) -> None:
    leader = stage.run("sleep", "1000", agent="a1")
    await eventually(lambda: marks.argv0(leader.pid) == "sleep")
    for fd in (0, 1):
        with pytest.raises(OSError, match="No such device") as refused:
            os.open(f"/proc/{leader.pid}/fd/{fd}", os.O_WRONLY)
        assert refused.value.errno == errno.ENXIO
    # The way out for programs that open /dev/stdout, and why it is not the rule:
    piped = stage.run("sh", "-c", "echo words >/dev/stdout; exec sleep 1000", agent="a2", stdio="pipe")
    assert await stage.line(piped) == "words"
    forged = os.open(f"/proc/{piped.pid}/fd/1", os.O_WRONLY)
    os.write(forged, b"forged\n")
    os.close(forged)
    assert await stage.line(piped) == "forged"


async def test_a_program_that_writes_to_its_stdin_is_told_so(stage: Stage) -> None:
    leader = stage.python("import os\ntry: os.write(0, b'x')\nexcept OSError as e: print(e.errno)")
    assert await stage.all(leader) == f"{errno.EPIPE}\n"


def _programs(room: Path) -> dict[str, int]:
    """Programs that cannot be started, and how exec says so."""
    for name, content, mode in (
        ("plain", "#!/bin/sh\n", 0o644),
        ("orphan", "#!/nonesuch\n", 0o755),
        ("text", "echo\n", 0o755),
    ):
        (room / name).write_text(content)
        (room / name).chmod(mode)
    return {
        "nonesuch": errno.ENOENT,
        "./nonesuch": errno.ENOENT,
        "./plain": errno.EACCES,
        "/": errno.EACCES,
        "./orphan": errno.ENOENT,
        "./text": errno.ENOEXEC,
    }


async def test_what_cannot_be_started_says_so_and_leaves_nothing(stage: Stage) -> None:
    stage.cell()
    for program, number in _programs(stage.room).items():
        before, below = fds(), marks.children(os.getpid())
        with pytest.raises(OSError) as refused:  # noqa: PT011  its number is looked at
            stage.run(program, "x")
        assert refused.value.errno == number, program
        assert (fds(), marks.children(os.getpid())) == (before, below), program
    for cwd, number in (("/nonesuch", errno.ENOENT), ("/etc/passwd", errno.ENOTDIR)):
        before = fds()
        with pytest.raises(OSError) as refused:  # noqa: PT011  its number is looked at
            stage.run("true", cwd=cwd)
        assert refused.value.errno == number
        assert refused.value.filename == cwd
        assert fds() == before
    assert await stage.run("true").wait() == 0


async def test_a_program_that_is_being_written_is_a_failed_start(stage: Stage) -> None:
    program = stage.room / "busy"
    shutil.copy(shutil.which("true") or "/bin/true", program)
    with contextlib.ExitStack() as held:
        held.callback(os.close, os.open(program, os.O_WRONLY))
        held.callback(os.close, unread := os.open(os.devnull, os.O_WRONLY))
        try:
            leader = stage.run("./busy", stderr=unread)
        except OSError as error:
            assert error.errno == errno.ETXTBSY  # noqa: PT017  one tier knows at once, the other when it ended
        else:
            await leader.wait()
            assert isinstance(leader.failure, OSError)
            assert leader.failure.filename == "./busy"


async def test_running_out_of_descriptors_leaves_nothing(stage: Stage) -> None:
    stage.cell()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.dup(0)
    os.close(lowest)
    refusals = 0
    try:
        for more in range(1, 16):
            before, below = fds(), marks.children(os.getpid())
            resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + more, hard))
            try:
                leader = stage.run("true")
            except OSError as error:
                assert error.errno == errno.EMFILE  # noqa: PT017  until there are enough
                refusals += 1
            else:
                break
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            assert (fds(), marks.children(os.getpid())) == (before, below), f"with {more} descriptors"
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert refusals > 3
    assert await leader.wait() == 0


def test_only_the_main_thread_starts_processes() -> None:
    async def main() -> None:
        with pytest.raises(RuntimeError, match="main thread"):
            await trio.to_thread.run_sync(
                lambda: local.spawn(["true"], cwd="/", env={}, stdio="socket", stderr=2, mark=1 << 32 | 1, cgroup=None),
                abandon_on_cancel=True,
            )

    trio.run(main)


def _script(program: str, *prefix: str) -> str:
    """Run a program with the package at hand in a process of its own; what it printed."""
    ran = subprocess.run(
        [*prefix, sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_children_get_the_limit_of_open_files_that_the_daemon_was_given() -> None:
    """…although the daemon raised its own and has more open than a child may have."""
    program = """if True:
        import os, resource, trio
        from supervisor.launchers import limits, local
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
        limits.widen()
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
        many = [os.dup(0) for _ in range(200)]
        async def main():
            for _ in range(3):
                process = local.spawn(["sh", "-c", "ulimit -Sn; ulimit -Hn"], cwd="/", env=os.environ, stdio="socket",
                                      stderr=2, mark=1 << 32 | 1, cgroup=None)
                said = b""
                while chunk := await process.stdout.receive_some(100):
                    said += chunk
                assert said.split()[0] == b"64" and int(said.split()[1]) == hard, said
                assert await process.wait() == 0
                process.close()
                assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
                assert resource.getrlimit(10)[0] == -1
        trio.run(main)
        print("held")
    """
    assert _script(program) == "held\n"


def test_too_many_processes_is_an_error_that_leaves_nothing() -> None:
    """The limit does not hold for root, so someone else tries."""
    if os.geteuid() != 0:
        pytest.skip("takes root to become someone whose processes can be counted")
    program = """if True:
        import errno, os, resource, trio
        from supervisor.launchers import local
        async def main():
            def spawn():
                return local.spawn(["true"], cwd="/", env=os.environ, stdio="socket", stderr=2,
                                   mark=1 << 32 | 1, cgroup=None)
            process = spawn()
            await process.wait()
            process.close()
            before = os.listdir("/proc/self/fd")
            os.setgroups([]); os.setgid(54321); os.setuid(54321)
            resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
            try:
                spawn()
            except OSError as error:
                print(error.errno == errno.EAGAIN, os.listdir("/proc/self/fd") == before)
        trio.run(main)
    """
    assert _script(program) == "True True\n"
