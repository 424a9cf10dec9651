"""A person's MCP server with two tools; its argument is the file that it makes when it is started."""

from __future__ import annotations

import json
import sys
from pathlib import Path

Path(sys.argv[1]).touch()
SCHEMA = {"type": "object", "properties": {}}
for line in sys.stdin:
    asked = json.loads(line)
    result: dict[str, object] = {}
    if asked["method"] == "initialize":
        version, named = asked["params"]["protocolVersion"], {"name": "notes", "version": "1"}
        result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": named}
    elif asked["method"] == "tools/list":
        result = {"tools": [{"name": name, "description": name, "inputSchema": SCHEMA} for name in ("read", "write")]}
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
