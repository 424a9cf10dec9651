"""`doctor`: looks at everything that a fleet stands on, all at once, and says how it is and what to do. It changes
nothing, starts no daemon and no login, and asks no network."""

from __future__ import annotations

import threading

from supervisor.ctl import findings, plain
from supervisor.ctl.findings import BAD, OK, WARN, Finding
from supervisor.ctl.outcome import DONE, REFUSED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from supervisor.ctl.errand import Errand

    Look = Callable[[], Iterable[Finding]]

#: A part that takes longer than this is given up (seconds): an answer is better than a complete one.
PATIENCE = 1.7
_STYLE = {OK: "green", WARN: "yellow", BAD: "red bold"}


def examine(errand: Errand) -> int:
    """Look, and tell. Exit code 1 where something is bad."""
    from supervisor.ctl import doctor_daemon, doctor_install, doctor_machine, doctor_programs

    place = errand.place
    seen = doctor_daemon.Seen()
    found = _together(
        {
            "installation": lambda: doctor_install.look(place),
            "machine": lambda: doctor_machine.look(place),
            "systemd": lambda: doctor_machine.systemd(place),
            "daemon": lambda: doctor_daemon.look(place, seen),
            "state": lambda: doctor_daemon.state(place),
            "agent CLIs": lambda: doctor_programs.look(place),
        }
    )
    found += doctor_daemon.compare(place, seen)
    answer = {"level": findings.worst(found), "findings": [each.plain() for each in found]}
    errand.answer(answer, drawn(errand, found))
    return REFUSED if answer["level"] == BAD else DONE


def _together(looks: dict[str, Look]) -> list[Finding]:
    """All parts at once, each for a limited time; in the order of their names."""
    done: dict[str, list[Finding]] = {}

    def one(topic: str, look: Look) -> None:
        try:
            done[topic] = [*look()]
        except Exception as error:  # noqa: BLE001  a part that cannot be looked at must not hide the others
            done[topic] = [Finding(BAD, topic, f"this could not be looked at: {type(error).__name__}: {error}")]

    threads = [threading.Thread(target=one, args=each, daemon=True) for each in looks.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    late = Finding(WARN, "", f"no answer within {PATIENCE:g} s", "a disk or a program is slow: ask again")
    return [
        each for topic in looks for each in done.get(topic, [Finding(WARN, topic, f"{topic}: {late.words}", late.do)])
    ]


def drawn(errand: Errand, found: list[Finding]) -> Iterable[str]:
    """A line each, the worst in colour, and what to do under it."""
    topic = ""
    for each in found:
        if each.topic != topic:
            topic = each.topic
            yield errand.screen.style(topic, "bold")
        word = errand.screen.style(plain.fit(each.level, 4, ""), _STYLE[each.level])
        yield f"  {word}  {errand.word(each.words)}"
        yield from (errand.screen.style(f"        {errand.word(note)}", "dim") for note in each.notes)
        if each.do:
            yield f"        do: {errand.word(each.do)}"
    counts = {level: sum(each.level == level for each in found) for level in (BAD, WARN)}
    yield ""
    if not any(counts.values()):
        yield errand.screen.style("all is well", "green")
    else:
        yield ", ".join(f"{number} {level}" for level, number in counts.items() if number)
