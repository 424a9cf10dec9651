"""What agents print is kept under a cap, read back whatever the bytes are, and never holds an agent up."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from supervisor.runtime.stderr import Stderr
from supervisor.runtime.transcript import Follower, Lines, Transcript, tail, text
from tests.house import PATIENCE, eventually

LINE = b"x" * 99 + b"\n"


def stored(path: Path) -> int:
    return sum(each.stat().st_size for each in path.parent.iterdir())


def test_bytes_are_kept_as_they_come(tmp_path: Path) -> None:
    transcript = Transcript(tmp_path / "t")
    raw = bytes(range(256)) + "half a letter: ä".encode()[:-1]
    transcript.write(raw)
    transcript.close()
    assert (tmp_path / "t").read_bytes() == raw


def test_a_flood_stays_under_the_cap_and_the_newest_is_kept(tmp_path: Path) -> None:
    transcript = Transcript(tmp_path / "t", cap=10_000)
    for number in range(5_000):
        transcript.write(b"%05d " % number + LINE)
        assert stored(tmp_path / "t") <= 10_000
    assert transcript.dropped == 5_000 * 106 - stored(tmp_path / "t")
    assert transcript.lost == 0
    assert [line[:5] for line in tail(tmp_path / "t", 3)] == [b"04997", b"04998", b"04999"]
    assert len(tail(tmp_path / "t", 60)) == 60, "over the border of the two files"
    transcript.close()


def test_files_are_parted_between_lines(tmp_path: Path) -> None:
    transcript = Transcript(tmp_path / "t", cap=1_000)
    transcript.write(LINE * 9)
    transcript.close()
    assert (tmp_path / "t.1").read_bytes() == LINE * 5
    assert (tmp_path / "t").read_bytes() == LINE * 4


def test_fifty_megabytes_without_a_newline_are_bounded(tmp_path: Path) -> None:
    transcript = Transcript(tmp_path / "t")
    transcript.write(b"first\n")
    for _ in range(50):
        transcript.write(b"y" * 1_000_000)
    transcript.write(b"\nlast\n")
    transcript.close()
    assert stored(tmp_path / "t") <= 16 * 1024 * 1024
    long, last = tail(tmp_path / "t", 2)
    assert last == b"last"
    assert len(long) < 300_000
    assert long.endswith(b" bytes more]")


def test_the_next_run_starts_on_a_line_of_its_own(tmp_path: Path) -> None:
    for words in (b"cut o", b"again\n"):
        transcript = Transcript(tmp_path / "t")
        transcript.write(words)
        transcript.close()
    assert tail(tmp_path / "t", 5) == [b"cut o", b"again"]


@given(
    pieces=st.lists(st.binary(max_size=12) | st.sampled_from([b"\n", b"a\n", b"\n\n"]), max_size=30),
    count=st.integers(0, 9),
)
def test_tail_gives_the_last_lines_of_any_bytes(pieces: list[bytes], count: int) -> None:
    directory = Path(os.environ["HOME"])
    whole = b"".join(pieces)
    with (directory / "t").open("wb") as file:
        file.write(whole)
    lines = whole.split(b"\n")
    expected = lines[:-1] if lines[-1] == b"" else lines
    assert tail(directory / "t", count) == (expected[-count:] if count else [])


@given(data=st.binary(max_size=300), cuts=st.lists(st.integers(0, 300), max_size=8), width=st.integers(1, 40))
def test_lines_do_not_depend_on_how_they_arrive(data: bytes, cuts: list[int], width: int) -> None:
    borders = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    piecewise, once = Lines(width), Lines(width)
    found = [line for start, end in pairwise(borders) for line in piecewise.feed(data[start:end])]
    assert found + piecewise.rest() == once.feed(data) + once.rest()
    assert [line[:width] for line in found] == [line[:width] for line in data.split(b"\n")[:-1]]


READER = """
import sys, pathlib
from supervisor.runtime.transcript import tail, text
print(ascii(text(*tail(pathlib.Path(sys.argv[1]), 1))))
"""


def test_reading_does_not_depend_on_the_locale(tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes("ä€😀".encode()[1:] + b"\x88\n")
    ran = subprocess.run(
        [sys.executable, "-X", "utf8=0", "-c", READER, str(tmp_path / "t")],
        env={"LANG": "C", "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert ran.stdout.strip() == ascii("�€😀�")
    assert text(b"\xff") == "�"


def test_nothing_yet_is_no_error(tmp_path: Path) -> None:
    assert tail(tmp_path / "t", 3) == []


# --- disks


@pytest.mark.parametrize("ready", ["before", "after"])
def test_a_directory_that_cannot_be_written_is_said_and_survived(tmp_path: Path, ready: str) -> None:
    (tmp_path / "in the way").write_bytes(b"")
    transcript = Transcript(tmp_path / "in the way" / "t")
    transcript.write(b"one\n")
    assert transcript.lost == 4
    assert f"in the way/t: Not a directory (uid {os.getuid()})" in transcript.fault or "File exists" in transcript.fault
    if ready == "after":
        (tmp_path / "in the way").unlink()
        transcript.write(b"two\n")
        assert tail(transcript.path, 3) == [b"two"]
        assert transcript.lost == 4
    transcript.close()


FULL = """
import resource, sys, pathlib
from supervisor.runtime.transcript import Transcript, tail
transcript = Transcript(pathlib.Path(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_FSIZE, (1050, resource.RLIM_INFINITY))
for number in range(20):
    transcript.write(b"%02d " % number + b"z" * 96 + b"\\n")
print(transcript.lost, transcript.end, transcript.fault)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
transcript.write(b"room again\\n")
print(*[line.decode()[:10] for line in tail(transcript.path, 3)], sep="|")
"""


def test_a_full_disk_is_counted_said_and_survived(tmp_path: Path) -> None:
    ran = subprocess.run([sys.executable, "-c", FULL, str(tmp_path / "t")], capture_output=True, text=True, check=True)
    first, second = ran.stdout.splitlines()
    lost, end, fault = first.split(" ", 2)
    assert (int(lost) + int(end), int(end)) == (2000, 1050)
    assert "File too large" in fault
    assert second == "09 zzzzzzz|10 zzzzzzz|room again", "what follows a gap is a line of its own"


def test_a_file_that_someone_took_away_comes_back(tmp_path: Path) -> None:
    transcript = Transcript(tmp_path / "t", cap=1_000)
    transcript.write(LINE)
    shutil.rmtree(tmp_path)
    transcript.write(LINE * 9)
    transcript.close()
    assert transcript.lost == 0
    assert tail(tmp_path / "t", 1) == [LINE[:-1]]


# --- following


async def test_a_follower_sees_each_line_once_over_rotations(tmp_path: Path, nursery: trio.Nursery) -> None:
    transcript = Transcript(tmp_path / "t", cap=4_000)
    transcript.write(b"before\n")
    found: list[bytes] = []
    ended = trio.Event()

    def told(count: int) -> bool:
        return len(found) == count

    async def follow() -> None:
        follower = Follower(transcript)
        while lines := await follower.lines():
            found.extend(lines)
        assert follower.skipped == 0
        ended.set()

    nursery.start_soon(follow)
    await trio.testing.wait_all_tasks_blocked()
    for number in range(500):
        line = b"%d " % number + LINE
        transcript.write(line[:50])
        transcript.write(line[50:])
        if number % 10 == 0:
            await eventually(partial(told, number + 1))
    transcript.write(b"without an end")
    transcript.close()
    with trio.fail_after(PATIENCE):
        await ended.wait()
    assert [line.split()[0] for line in found] == [b"%d" % number for number in range(500)] + [b"without"]


async def test_a_slow_follower_is_told_how_much_it_missed(tmp_path: Path) -> None:
    transcript = Transcript(tmp_path / "t", cap=1_000)
    follower = Follower(transcript, 0)
    transcript.write(LINE * 100)
    with trio.fail_after(PATIENCE):
        lines = [line for _ in range(2) for line in await follower.lines()]
    assert lines == [LINE[:-1]] * 10
    assert follower.skipped == 90 * len(LINE)
    transcript.close()
    assert await follower.lines() == []


# --- stderr


async def test_an_agent_can_flood_stderr_and_the_disk_stays_under_the_cap(tmp_path: Path) -> None:
    transcript = Transcript(tmp_path / "stderr.log", cap=200_000)
    stderr = Stderr(transcript)
    flood = "head -c 20000000 /dev/zero >&2; echo; echo done >/dev/stderr"
    async with trio.open_nursery() as nursery:
        agent = await nursery.start(partial(trio.run_process, ["sh", "-c", flood], stderr=stderr.fd))
        with trio.fail_after(PATIENCE):
            await stderr.pump()
    assert agent.returncode == 0
    stderr.close()
    transcript.close()
    assert transcript.end == 20_000_005
    assert stored(transcript.path) <= 200_000
    assert tail(transcript.path, 1)[0].endswith(b"done")


async def test_what_lies_in_the_pipe_at_the_end_is_kept_though_a_stranger_holds_it(
    tmp_path: Path, nursery: trio.Nursery
) -> None:
    transcript = Transcript(tmp_path / "stderr.log")
    stderr = Stderr(transcript)
    stranger = await nursery.start(partial(trio.run_process, ["sleep", "600"], stderr=stderr.fd, check=False))
    await trio.run_process(["sh", "-c", "echo last words >&2"], stderr=stderr.fd)
    stderr.close()
    stderr.close()
    transcript.close()
    assert tail(transcript.path, 1) == [b"last words"]
    assert stranger.returncode is None
    stranger.kill()
    await stranger.wait()
