"""The unit as a file: what is shipped, what the client writes of it, and that systemd reads both without a word."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from supervisor.ctl import installing, manager, options, unit
from supervisor.ctl.errand import Errand
from supervisor.ctl.outcome import REFUSED, USAGE, Failure
from supervisor.ctl.place import Place

ROOT = Path(__file__).parents[2]
SHIPPED = ROOT / "contrib/systemd/fleet-supervisor.service"


def here() -> Place:
    """A person whose XDG directories are where they are by default."""
    home = os.environ["HOME"]
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "XDG_RUNTIME_DIR")}
    return Place(kept, os.geteuid(), home, home)


def install(*words: str, place: Place | None = None) -> int:
    return installing.install(Errand(options.parse(["install-unit", *words]), place or here()))


def verify(content: str) -> subprocess.CompletedProcess[str]:
    """What systemd has to say about a unit. It exits with 0 even where it does not know a key."""
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd-analyze is not installed")
    file = Path(os.environ["HOME"]) / manager.UNIT
    file.write_text(content)
    said = subprocess.run(
        ["systemd-analyze", "--user", "verify", file],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    file.unlink()
    return said


def program(directory: str) -> str:
    """Something that can be executed, in a directory of the test's own."""
    path = Path(os.environ["HOME"]) / directory / "supervisord"
    path.parent.mkdir(parents=True)
    path.symlink_to("/bin/true")
    return str(path)


def test_the_client_writes_the_unit_that_is_shipped() -> None:
    assert Path(unit.TEMPLATE).read_text() == SHIPPED.read_text()


@pytest.mark.parametrize("directory", [".local/bin", "my agents", "a%h$HOME b", "päth", "semi;colon #"])
def test_systemd_reads_the_unit_without_a_word_wherever_the_program_lies(directory: str) -> None:
    said = verify(unit.text([program(directory)], here()))
    assert (said.returncode, said.stdout, said.stderr) == (0, "", "")


def test_a_word_that_systemd_does_not_know_would_be_seen() -> None:
    said = verify(unit.text([program("bin")], here()).replace("WatchdogSec", "WatchdogSecs"))
    assert "Unknown key" in said.stderr


def test_a_program_that_systemd_would_not_start_is_refused() -> None:
    with pytest.raises(Failure, match="quotes or backslashes") as caught:
        unit.text(["/home/o'brien/bin/supervisord"], here())
    assert caught.value.code == REFUSED


def test_where_our_files_lie_goes_into_the_unit_when_it_is_not_the_usual_place() -> None:
    place = here()
    assert "\nEnvironment=" not in unit.text(["/bin/true"], place)
    moved = Place({**place.environ, "XDG_STATE_HOME": "/srv/a state/50%"}, place.uid, place.cwd, place.home)
    assert '\nEnvironment="XDG_STATE_HOME=/srv/a state/50%%"\n' in unit.text(["/bin/true"], moved)


def test_print_writes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert install("--print") == 0
    assert "\nExecStart=/" in capsys.readouterr().out
    assert not (Path(os.environ["HOME"]) / ".config").exists()


def test_without_a_user_manager_the_unit_is_written_and_the_way_on_is_told() -> None:
    with pytest.raises(Failure, match="no user manager answers") as caught:
        install()
    assert caught.value.code == REFUSED
    assert any("enable-linger" in line for line in caught.value.remedy)
    written = Path(os.environ["HOME"]) / ".config/systemd/user" / manager.UNIT
    assert "ExecStart=/" in written.read_text()


def test_a_unit_that_a_person_changed_is_kept_and_the_difference_shown() -> None:
    written = Path(os.environ["HOME"]) / ".config/systemd/user" / manager.UNIT
    with pytest.raises(Failure, match="no user manager"):
        install()
    fresh = written.read_text()
    written.write_text(fresh.replace("WatchdogSec=30", "WatchdogSec=5"))
    with pytest.raises(Failure, match="is kept") as caught:
        install("--now")
    assert {"| -WatchdogSec=5", "| +WatchdogSec=30"} <= set(caught.value.remedy)
    assert "WatchdogSec=5" in written.read_text()
    with pytest.raises(Failure, match="no user manager"):
        install("--force")
    assert written.read_text() == fresh


def test_a_unit_of_an_earlier_version_that_nobody_changed_is_brought_up_to_date() -> None:
    place = here()
    written = Path(manager.directory(place)) / manager.UNIT
    assert unit.write(str(written), unit.text(["/old/supervisord"], place), force=False)
    assert unit.write(str(written), unit.text(["/new/supervisord"], place), force=False)
    assert "ExecStart=/new/supervisord --no-warden\n" in written.read_text()
    assert not unit.write(str(written), unit.text(["/new/supervisord"], place), force=False)
    assert [path.name for path in written.parent.iterdir()] == [manager.UNIT]


def test_a_masked_unit_is_kept() -> None:
    place = here()
    written = Path(manager.directory(place)) / manager.UNIT
    written.parent.mkdir(parents=True)
    written.symlink_to("/dev/null")
    with pytest.raises(Failure, match="is kept") as caught:
        unit.write(str(written), unit.text(["/new/supervisord"], place), force=False)
    assert "| -# a link to /dev/null" in caught.value.remedy
    assert written.is_symlink()


def test_a_named_socket_is_no_daemon_for_a_unit() -> None:
    place = here()
    named = Place({**place.environ, "FLEET_SOCKET": "/run/x"}, place.uid, place.cwd, place.home)
    with pytest.raises(Failure, match="FLEET_SOCKET") as caught:
        install(place=named)
    assert caught.value.code == USAGE
