"""MCP servers in a grant: one word for all kinds."""

from __future__ import annotations

import pytest

from supervisor.core.rights import covers
from supervisor.kinds import codex_grant, mcp, opencode_lines


def test_a_server_is_named_whole_or_tool_by_tool() -> None:
    tools = ("read", "mcp:notes", "mcp:my.notes:read", "mcp:notes:*", "claude:mcp__x__y")
    assert mcp.servers(tools) == ("notes", "my.notes")
    assert mcp.servers(None) == ()
    assert mcp.written(tools, "mcp__{server}__{tool}") == (
        "read", "mcp__notes__*", "mcp__my_notes__read", "mcp__notes__*", "claude:mcp__x__y",
    )  # fmt: skip


@pytest.mark.parametrize("name", ["mcp:", "mcp:*", "mcp:a:b:c", "mcp:a,b", "mcp:a b", 'mcp:a"', "mcp:a:", "mcp:a:b*"])
def test_no_name_of_a_server_can_widen_the_grant(name: str) -> None:
    assert mcp.servers((name,)) == ()
    assert mcp.written((name,), "{server}") == (name,)


def test_codex_and_opencode_write_it_their_way() -> None:
    found = codex_grant.settings(("mcp:notes", "mcp:more:read"), ("notes", "more", "other"))
    assert found["mcp_servers"] == {"more": {"enabled_tools": ["read"]}, "other": {"enabled": False}}
    assert opencode_lines.TOOLS.named(("mcp:my.notes", "mcp:notes:read")) == ("my_notes_*", "notes_read")


def test_a_tool_of_a_server_lies_within_the_server() -> None:
    assert covers("tools", "mcp:notes", "mcp:notes:read")
    assert not covers("tools", "mcp:notes:read", "mcp:notes")
    assert not covers("tools", "mcp:notes", "mcp:notesmore")
    assert not covers("tools", "bash", "bash:x")
