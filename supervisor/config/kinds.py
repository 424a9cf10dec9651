"""The kinds a fleet has: those built in, and those of `[kinds]`; and whether a kind that is named is one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import frozen

from supervisor.config.layers import BUILT_IN, Entry, Origin, Source, absolute, text
from supervisor.config.problems import Report, listed, nearest, quoted, show_path
from supervisor.config.values import label_fault
from supervisor.core.spec import KindSpec

#: A protocol of any program: it is a kind only with the program's command.
COMMANDED: Final = "lines"
#: Protocols of programs that may be either: one that stays, or one that does one task and ends.
EITHER: Final = frozenset({"lines", "scripted"})


def built_in(protocols: Mapping[str, bool]) -> tuple[KindSpec, ...]:
    """The kinds that need no table: each protocol that knows its own program."""
    return tuple(KindSpec(name, name, once=protocols[name]) for name in sorted(protocols) if name != COMMANDED)


@frozen
class Kinds:
    """What there is. `broken` are declared ones with a fault of their own: to name one is not another fault."""

    specs: tuple[KindSpec, ...]
    origins: tuple[Origin, ...]
    broken: frozenset[str]

    @property
    def known(self) -> tuple[str, ...]:
        return tuple(spec.name for spec in self.specs)

    def check(self, entry: Entry, report: Report) -> None:
        """Every kind that the table names is there."""
        kind = entry.get("kind")
        if kind is not None:
            self._check(kind, entry, ("kind",), report)
        for place, kind in enumerate(entry.get("grant.kinds") or ()):
            self._check(kind, entry, ("grant", "kinds", place), report)

    def _check(self, kind: str, entry: Entry, below: tuple[str | int, ...], report: Report) -> None:
        if kind in self.known or kind in self.broken:
            return
        words = f"there is no kind {quoted(kind)}"
        remedy = f"{nearest(kind, self.known)} Known are {listed(self.known)}".strip()
        if kind == COMMANDED:
            words = f"the kind {quoted(kind)} is any program, and needs its command"
            remedy = f'Write [kinds.NAME] with command = ["…"] and protocol = "{COMMANDED}", and name that kind here'
        entry.source.tell(report, (*entry.path, *below), words, remedy)


def kinds(sources: Sequence[Source], protocols: Mapping[str, bool], report: Report) -> Kinds:
    """The built-in kinds, under the `[kinds]` of each file; key by key, the later file wins."""
    specs = {spec.name: spec for spec in built_in(protocols)}
    origins: list[Origin] = []
    broken: set[str] = set()
    for name in dict.fromkeys(name for source in sources for name in source.tables.kinds):
        before = len(report.problems)
        spec = _kind(name, [source for source in sources if name in source.tables.kinds], protocols, report, origins)
        if spec is None or len(report.problems) > before:
            broken.add(name)
        if spec is not None:
            specs[name] = spec
    for source in sources:
        broken |= {str(path[1]) for path in source.wrong if path[0] == "kinds" and len(path) > 1}
    return Kinds(tuple(specs.values()), tuple(origins), frozenset(broken))


def _kind(
    name: str, sources: Sequence[Source], protocols: Mapping[str, bool], report: Report, origins: list[Origin]
) -> KindSpec | None:
    """One declared kind, None where it is none."""
    path, last = ("kinds", name), sources[-1]
    given, own = _given(name, sources, report)
    fault = label_fault(name)
    if fault:
        last.tell(report, path, f"{quoted(name)} is no kind: {fault}")
    if "protocol" not in given and name in protocols:
        given["protocol"] = name
        own.append(Origin(f"{show_path(path)}.protocol", text("protocol", name), BUILT_IN))
    protocol = given.get("protocol")
    if protocol is None:
        if (*path, "protocol") not in last.wrong:
            remedy = f'Write protocol = "{COMMANDED}", or another of {listed(sorted(protocols))}'
            last.tell(report, path, f"{quoted(name)} has no protocol", remedy)
        return None
    if protocol not in protocols:
        near = nearest(protocol, tuple(protocols))
        words = f"there is no protocol {quoted(protocol)}"
        place = next(one for one in reversed(sources) if one.tables.kinds[name].protocol is not None)
        place.tell(report, (*path, "protocol"), words, f"{near} It is one of {listed(sorted(protocols))}".strip())
        return None
    if protocol == COMMANDED and "command" not in given and (*path, "command") not in last.wrong:
        remedy = 'Write command = ["PROGRAM", "ARGUMENT"]'
        last.tell(
            report, path, f"{quoted(name)} has no command, and the protocol {quoted(COMMANDED)} knows none", remedy
        )
    if protocol not in EITHER and given.get("once", protocols[protocol]) != protocols[protocol]:
        ends = "does one task and ends" if protocols[protocol] else "stays for the next task"
        place = next(one for one in reversed(sources) if one.tables.kinds[name].once is not None)
        words = f"a program of the protocol {quoted(protocol)} {ends}, whatever is said here"
        place.tell(report, (*path, "once"), words, f"Leave once out; it is a choice for {listed(sorted(EITHER))}")
    origins += own
    return KindSpec(name, **{"once": protocols[protocol], **given})


def _given(name: str, sources: Sequence[Source], report: Report) -> tuple[dict[str, Any], list[Origin]]:
    """What the files say about a kind, the later one's word for each key."""
    given: dict[str, Any] = {}
    own: dict[str, Origin] = {}
    for source in sources:
        for key in ("protocol", "command", "stdio", "once"):
            value = getattr(source.tables.kinds[name], key)
            if value is not None:
                path = ("kinds", name, key)
                given[key] = _command(value, source, path, report) if key == "command" else value
                own[key] = Origin(show_path(path), text(key, given[key]), source.origin(path))
    return given, [*own.values()]


def _command(argv: tuple[str, ...], source: Source, path: tuple[str, ...], report: Report) -> tuple[str, ...]:
    """argv; its program is looked up in PATH, unless it is written as a path, which is relative to the file."""
    if not argv or not argv[0].strip():
        source.tell(report, path, "the command names no program", 'Write command = ["PROGRAM", "ARGUMENT"]')
        return argv
    if "/" not in argv[0]:
        return argv
    try:
        return (absolute(argv[0], source.file), *argv[1:])
    except ValueError as error:
        source.tell(report, (*path, 0), str(error))
        return argv
