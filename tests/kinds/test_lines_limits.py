"""The status line `limited`: what it says, and what of it cannot be taken."""

from __future__ import annotations

import pytest

from supervisor.core.facts import Garbled, Limited
from supervisor.kinds.lines import LINES
from tests.kinds.drive import SEAT


@pytest.mark.parametrize(
    ("line", "limit"),
    [
        (b'{"fleet":"limited","sort":"rate"}', Limited("a7", 3, "rate")),
        (b'{"fleet":"limited","sort":"auth","text":"log in"}', Limited("a7", 3, "auth", None, "log in")),
        (b'{"fleet":"limited","sort":"quota","until":1760000000}', Limited("a7", 3, "quota", 1760000000.0)),
        (
            b'{"fleet":"limited","sort":"quota","until":"3pm","text":"no more"}',
            Limited("a7", 3, "quota", None, "until 3pm no more"),
        ),
        (b'{"fleet":"limited","sort":"overload","until":null}', Limited("a7", 3, "overload")),
    ],
)
def test_a_limit_is_said_with_its_end_in_seconds_or_in_words(line: bytes, limit: Limited) -> None:
    assert LINES.converse(SEAT).read(line) == [limit]


@pytest.mark.parametrize(
    "line",
    [
        b'{"fleet":"limited"}',
        b'{"fleet":"limited","sort":"patience"}',
        b'{"fleet":"limited","sort":"rate","until":true}',
        b'{"fleet":"limited","sort":"rate","until":-5}',
        b'{"fleet":"limited","sort":"rate","until":1e99}',
        b'{"fleet":"limited","sort":"rate","text":7}',
    ],
)
def test_what_cannot_be_a_limit_is_garbled(line: bytes) -> None:
    (said,) = LINES.converse(SEAT).read(line)
    assert isinstance(said, Garbled)
