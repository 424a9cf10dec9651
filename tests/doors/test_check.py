"""Nothing reaches the daemon but a known verb, with parameters of exactly its shapes, from a caller who may ask."""

from __future__ import annotations

import pytest

from supervisor.core.authority import TABLE, Agent, Nobody, Operator
from supervisor.core.refusals import RefusedError
from supervisor.doors import check, wire
from supervisor.doors.verbs import METHODS

AGENT = Agent("p-1", "a17", 2)


@pytest.mark.parametrize("name", ["run", "shell", "exec", "eval"])
def test_no_verb_runs_anything(name: str) -> None:
    with pytest.raises(wire.WireError) as caught:
        check.method(name)
    assert caught.value.code == wire.UNKNOWN


@pytest.mark.parametrize(
    "name", ["a.b.__class__", "__class__", "tree.__init__", "TREE", "tree ", "", "x" * 100_000, "tre\u0435", "\x1b[2J"]
)
def test_the_list_of_methods_is_closed(name: str) -> None:
    with pytest.raises(wire.WireError) as caught:
        check.method(name)
    assert caught.value.code == wire.UNKNOWN
    assert len(caught.value.message) < 200
    assert caught.value.message.isprintable()


def test_a_misspelt_method_is_told_the_nearest_known_one() -> None:
    with pytest.raises(wire.WireError, match="did you mean 'disband'"):
        check.method("disbnad")


def test_every_method_has_a_row_in_the_authority_table() -> None:
    assert METHODS.keys() <= TABLE.keys()


@pytest.mark.parametrize("name", sorted(METHODS))
def test_nobody_is_refused_every_verb_with_the_reason(name: str) -> None:
    with pytest.raises(RefusedError) as caught:
        check.authority(Nobody("adopted by the daemon"), METHODS[name])
    assert caught.value.refusal.code == "nobody"
    assert "adopted by the daemon" in caught.value.refusal.message


@pytest.mark.parametrize("name", sorted(METHODS))
def test_an_agent_is_refused_what_is_the_operators_alone(name: str) -> None:
    check.authority(Operator(), METHODS[name])
    if TABLE[name] == "operator":
        with pytest.raises(RefusedError) as caught:
            check.authority(AGENT, METHODS[name])
        assert (caught.value.refusal.code, caught.value.refusal.ask) == ("authority", "operator")
    else:
        check.authority(AGENT, METHODS[name])


@pytest.mark.parametrize(
    ("verb", "params", "parameter"),
    [
        ("fork", {"tokens": True}, "tokens"),
        ("fork", {"tokens": "7"}, "tokens"),
        ("fork", {"tokens": 7.0}, "tokens"),
        ("fork", {"tokens": -1}, "tokens"),
        ("fork", {"tokens": 10**15 + 1}, "tokens"),
        ("fork", {"cost": 0.25}, "cost"),
        ("fork", {"cost": 10**24 + 1}, "cost"),
        ("fork", {"wall": "10s"}, "wall"),
        ("fork", {"wall": -0.5}, "wall"),
        ("fork", {"wall": float("inf")}, "wall"),
        ("fork", {"wall": float("nan")}, "wall"),
        ("fork", {"wall": True}, "wall"),
        ("fork", {"wall": 10**40}, "wall"),
        ("fork", {"wait": 1}, "wait"),
        ("fork", {"wait": "yes"}, "wait"),
        ("fork", {"tool": "bash"}, "tool"),
        ("fork", {"tool": ["bash", 1]}, "tool"),
        ("fork", {"task": None}, "task"),
        ("fork", {"task": ["x"]}, "task"),
        ("fork", {"directory": "/srv\0/x"}, "directory"),
        ("fork", {"tool": ["a\0"]}, "tool"),
        ("stop", {}, "agent"),
        ("stop", {"agent": 17}, "agent"),
        ("tree", {"project": 1}, "project"),
        ("tree", {"cwd": False}, "cwd"),
        ("stop", {"agent": "a1", "timeout": "5"}, "timeout"),
    ],
)
def test_nothing_is_coerced(verb: str, params: dict[str, object], parameter: str) -> None:
    with pytest.raises(wire.BadParams) as caught:
        check.params(METHODS[verb], params)
    assert caught.value.code == wire.PARAMS
    assert caught.value.data is not None
    assert caught.value.data["parameter"] == parameter


def test_an_unknown_parameter_is_told_the_nearest_known_one() -> None:
    with pytest.raises(wire.BadParams, match="did you mean 'tokens'") as caught:
        check.params(METHODS["fork"], {"tokns": 5})
    assert caught.value.data == {"parameter": "'tokns'", "nearest": "tokens"}


@pytest.mark.parametrize(
    ("verb", "params"),
    [
        (
            "fork",
            {"tokens": 0, "cost": 250_000_000, "wall": 1.5, "tool": [], "wait": False, "task": "", "turns": 10**15},
        ),
        ("fork", {"wall": 0}),
        ("stop", {"agent": "lead", "timeout": 5, "project": "offgrind", "cwd": "/srv"}),
        ("logs", {"agent": "lead", "lines": 40, "follow": True}),
        ("status", {}),
    ],
)
def test_what_fits_is_taken(verb: str, params: dict[str, object]) -> None:
    check.params(METHODS[verb], params)


def test_only_verbs_that_wait_take_a_timeout() -> None:
    with pytest.raises(wire.BadParams):
        check.params(METHODS["status"], {"timeout": 5})
