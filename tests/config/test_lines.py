"""The line that an error names is the line where the key stands, however the file is written."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
import tomli_w
from hypothesis import given, settings
from hypothesis import strategies as st

from supervisor.config.lines import Path, lines

#: Characters that mean something in TOML, where a text may hold them without meaning it.
TRAPS = "ab9-_ .,#=[]{}\"'\\\n\té😀"
KEYS = st.text(TRAPS, max_size=4)
SCALARS = st.one_of(
    st.integers(-99, 99),
    st.booleans(),
    st.floats(allow_nan=False),
    st.dates(),
    st.datetimes(),
    st.text(TRAPS, max_size=9),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)
DOCUMENTS = st.dictionaries(KEYS, VALUES, max_size=4)


class Writer:
    """Writes a document in a way that is drawn, and remembers on which line each key came to stand."""

    def __init__(self, draw: st.DataObject) -> None:
        self.text = ""
        self.expected: dict[Path, int] = {}
        self.draw = draw

    def chance(self) -> bool:
        return self.draw.draw(st.booleans())

    def note(self, path: Path) -> None:
        self.expected.setdefault(path, self.text.count("\n") + 1)

    def gap(self) -> None:
        """White space and comments, as they may stand between the elements of an array."""
        self.text += self.draw.draw(st.sampled_from(["", " ", "\n", "# ] } \" '\n", "\n\t"]))

    def key(self, key: str) -> str:
        if re.fullmatch("[A-Za-z0-9_-]+", key) and self.chance():
            return key
        if "'" not in key and "\n" not in key and self.chance():
            return f"'{key}'"
        return json.dumps(key, ensure_ascii=self.chance() and "😀" not in key)

    def string(self, text: str) -> str:
        ways = [json.dumps(text, ensure_ascii=False)]
        if "'" not in text:
            ways += [f"'''\n{text}'''"] + ([f"'{text}'"] if "\n" not in text else [])
        escaped = text.replace("\\", "\\\\").replace('"', '""\\"'[2:])
        ways += [f'"""\n{escaped}"""', f'"""\\\n\n  {escaped}"""' if text.strip() == text and text else '""']
        if '"' not in text and "\\" not in text:
            ways.append(f'"""\n""{text}"""')
        chosen = self.draw.draw(st.sampled_from(ways))
        return chosen if tomllib.loads(f"a = {chosen}")["a"] == text else ways[0]

    def value(self, value: Any, path: Path) -> None:
        if isinstance(value, dict):
            self.text += "{"
            for place, (key, inner) in enumerate(value.items()):
                self.text += " , " if place else " "
                self.note((*path, key))
                self.text += f"{self.key(key)} = "
                self.value(inner, (*path, key))
            self.text += " }"
        elif isinstance(value, list):
            self.text += "["
            for place, inner in enumerate(value):
                self.gap()
                self.note((*path, place))
                self.value(inner, (*path, place))
                self.gap()
                self.text += "," if place < len(value) - 1 or self.chance() else ""
            self.gap()
            self.text += "]"
        elif isinstance(value, str):
            self.text += self.string(value)
        else:
            self.text += tomli_w.dumps({"a": value}).removeprefix("a = ").rstrip("\n")

    def pair(self, names: tuple[str, ...], value: Any, path: Path) -> None:
        """`a.b = value`, or one such line for each key of a table."""
        if isinstance(value, dict) and value and self.chance():
            for key, inner in value.items():
                self.pair((*names, key), inner, (*path, key))
            return
        for length in range(len(names)):
            self.note(path[: len(path) - length])
        self.text += " . ".join(map(self.key, names)) + self.draw.draw(st.sampled_from(["=", " =\t", " = "]))
        self.value(value, path)
        self.text += self.draw.draw(st.sampled_from(["\n", " \n", " # [x]\n"]))

    def table(self, table: dict[str, Any], names: tuple[str, ...], path: Path) -> None:
        """The keys of a table, then the tables below it under headers of their own."""
        below = [
            key for key, value in table.items() if (isinstance(value, dict) or self.tables(value)) and self.chance()
        ]
        for key, value in table.items():
            if key not in below:
                self.gap()
                self.pair((key,), value, (*path, key))
        for key in below:
            value, inner = table[key], (*path, key)
            for place, element in enumerate(value) if isinstance(value, list) else [(None, value)]:
                self.gap()
                self.text += "\n"
                opening, closing = ("[", "]") if place is None else ("[[", "]]")
                for length in range(1, len(inner) + 1):
                    self.note(inner[:length])
                at = inner if place is None else (*inner, place)
                self.note(at)
                self.text += f"{opening} {'.'.join(map(self.key, (*names, key)))} {closing}\n"
                self.table(element, (*names, key), at)

    def tables(self, value: Any) -> bool:
        return isinstance(value, list) and bool(value) and all(isinstance(one, dict) for one in value)


def paths(value: Any, path: Path = ()) -> Iterator[Path]:
    if isinstance(value, dict):
        inner = [((*path, key), one) for key, one in value.items()]
    else:
        inner = [((*path, place), one) for place, one in enumerate(value)] if isinstance(value, list) else []
    for at, one in inner:
        yield at
        yield from paths(one, at)


@settings(deadline=None)
@given(DOCUMENTS, st.data())
def test_every_key_is_found_on_the_line_where_it_was_written(document: dict[str, Any], data: st.DataObject) -> None:
    writer = Writer(data)
    writer.table(document, (), ())
    text = writer.text.replace("\n", "\r\n") if data.draw(st.booleans()) else writer.text
    assert tomllib.loads(text) == document
    assert dict(lines(text)) == writer.expected


@settings(deadline=None)
@given(DOCUMENTS, st.booleans())
def test_no_key_of_a_written_document_is_missed(document: dict[str, Any], multiline: bool) -> None:
    text = tomli_w.dumps(document, multiline_strings=multiline)
    assert {path for path, _ in lines(text)} == set(paths(tomllib.loads(text)))


@settings(deadline=None)
@given(st.text("ab1=[]{},.\"'\\ \n#", max_size=30))
def test_whatever_toml_accepts_is_scanned_alike(text: str) -> None:
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    assert {path for path, _ in lines(text)} == set(paths(document))


@pytest.mark.parametrize(
    ("text", "path", "line"),
    [
        ('a = """\n[b]\nc = 1\n"""\nd = 1', ("d",), 5),
        ("a = '''\n'''''\nb = 1", ("b",), 3),
        ('a = """""\nb"""\nc=1', ("c",), 3),
        ("a = [\n  1, # ]\n  2\n]\nb = 1", ("b",), 5),
        ("a = [\n  1,\n  2,\n]", ("a", 1), 3),
        ("[a]\n[a.b]\nc.d = 1979-05-27 07:32:00\ne = 1", ("a", "b", "e"), 4),
        ("[[a]]\n[a.b]\nc=1\n[[a]]\n[a.b]\nc=1", ("a", 1, "b", "c"), 6),
        ('x = {a = {b = [1,\n2]}, "c d" = 1}', ("x", "c d"), 2),
        ("[a.b.c]\nd = 1", ("a", "b"), 1),
        ("[a.b.c]\nd = 1\n[a]\nx = 1", ("a",), 1),
    ],
)
def test_lines_of_awkward_places(text: str, path: Path, line: int) -> None:
    tomllib.loads(text)
    assert lines(text).of(path) == line


def test_an_unknown_path_has_the_line_of_what_it_would_stand_in() -> None:
    places = lines("\n[agents.lead]\nkind = 'pi'")
    assert places.of(("agents", "lead", "grant", "tokens")) == 2
    assert places.of(("nothing",)) == 1


def test_deep_nesting_needs_no_stack() -> None:
    text = "a = " + "[" * 50_000 + "]" * 50_000 + "\n" + ".".join("k" * 50_000) + " = 1\nb = 1"
    assert lines(text).of(("b",)) == 3
