"""Nothing that an agent writes can move a terminal's cursor, hide, or break a column."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from supervisor.ctl import plain

#: Any text that JSON can carry, halves of surrogate pairs included, and often the signs that do harm.
NASTY = st.text(
    st.one_of(
        st.characters(),
        st.sampled_from(
            "\x1b\x07\x00\r\n\t\x9b\x7f\u202e\u2066\u200b\u200d\ufeff\u0301\u3164\ufe0f\U000e0041日本👩é\ud800 "
        ),
    ),
    max_size=40,
)
SAFE = {"Ll", "Lu", "Lt", "Lm", "Lo", "Nd", "Nl", "No", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po"}
SAFE |= {"Sm", "Sc", "Sk", "So", "Zs", "Mn", "Mc", "Me"}


@settings(deadline=None)
@given(NASTY)
def test_no_control_or_hidden_sign_reaches_a_terminal(text: str) -> None:
    shown = plain.clean(text)
    assert {unicodedata.category(sign) for sign in shown} <= SAFE
    assert not set(shown) & set("\u3164\u115f\u1160\uffa0\ufe0f\u034f")
    shown.encode()


@settings(deadline=None)
@given(NASTY)
def test_a_text_of_several_lines_keeps_line_ends_and_tabs_and_nothing_else(text: str) -> None:
    shown = plain.clean(text, lines=True)
    assert {unicodedata.category(sign) for sign in shown if sign not in "\n\t"} <= SAFE


@settings(deadline=None)
@given(NASTY)
def test_what_is_plain_already_is_left_alone(text: str) -> None:
    assert plain.clean(plain.clean(text)) == plain.clean(text)


@settings(deadline=None)
@given(NASTY)
def test_a_terminal_without_utf8_gets_ascii(text: str) -> None:
    assert plain.one_line(text, ascii_only=True).isascii()


@settings(deadline=None)
@given(NASTY, st.integers(0, 60), st.booleans(), st.sampled_from(["…", "~", ""]))
def test_a_cell_takes_exactly_its_columns(text: str, columns: int, right: bool, mark: str) -> None:
    cell = plain.fit(plain.one_line(text), columns, mark, right=right)
    assert plain.width(cell) == columns


@pytest.mark.parametrize(
    ("text", "shown", "columns"),
    [
        ("a\x1b[31mb", "a\\x1b[31mb", 10),
        ("\u202etxt.exe", "\\u202etxt.exe", 13),
        ("a\u200db", "a\\u200db", 8),
        ("日本", "日本", 4),
        ("e\u0301", "é", 1),
        ("\u0301x", "\\u0301x", 7),
        ("☀\ufe0f", "☀", 1),
        ("\ud800", "\\ud800", 6),
        ("a\xa0b", "a b", 3),
        ("\U000e0041", "\\U000e0041", 10),
    ],
)
def test_known_tricks_are_shown_as_what_they_are(text: str, shown: str, columns: int) -> None:
    assert plain.clean(text) == shown
    assert plain.width(shown) == columns
