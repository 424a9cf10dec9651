"""The wires of the tests' model server: how a request is read and an answer streamed. One class a wire.

A further wire is a class here and a line in `WIRES`."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from typing import Any, ClassVar

from attrs import frozen


@frozen
class Talk:
    """What a request says: the user's last words, the answers before it, and what tools answered since."""

    said: str
    n: int
    results: tuple[str, ...]


def _plain(content: object) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if part.get("type") == "text")
    return ""


def _talk(events: list[tuple[str, str]]) -> Talk:
    """From (role, words): words of `user` count as said, `tool` as a tool that has run."""
    last = max((at for at, (role, words) in enumerate(events) if role == "user" and words), default=-1)
    return Talk(
        said=events[last][1] if last >= 0 else "",
        n=sum(role == "assistant" for role, _ in events),
        results=tuple(words for role, words in events[last + 1 :] if role == "tool"),
    )


class Wire:
    """An answer under way. Its numbers are different in every field, so that no mix-up adds up by chance."""

    name: ClassVar[str]
    #: whether this wire can say what was written to the cache, and how much of the output was reasoning
    _writes: ClassVar[bool] = False
    _reasons: ClassVar[bool] = False

    def __init__(self, send: Callable[[bytes], None], talk: Talk, model: str) -> None:
        self._send, self.talk, self.model = send, talk, model
        self._id = uuid.uuid4().hex
        #: what a client that leaves before the end was told of its usage; empty where the wire tells it last
        self.told: dict[str, int] = {}
        self.finished = False
        n = talk.n
        self.numbers = {
            "input": 811 + 97 * n,
            "cache_read": 307 + 13 * n,
            "cache_write": 53 + 3 * n if self._writes else 0,
            "output": 71 + 5 * n,
            "reasoning": 17 + n if self._reasons else 0,
        }

    @classmethod
    def read(cls, body: dict[str, Any]) -> Talk:
        raise NotImplementedError

    @classmethod
    def tools(cls, body: dict[str, Any]) -> list[str]:
        return [str(tool.get("name") or tool["function"]["name"]) for tool in body.get("tools") or []]

    @classmethod
    def failure(cls, code: int) -> dict[str, Any]:
        return {"error": {"message": f"as scripted: {code}", "type": "scripted"}}

    def begin(self) -> None:
        raise NotImplementedError

    def words(self, text: str) -> None:
        raise NotImplementedError

    def tool(self, name: str, arguments: dict[str, str]) -> None:
        raise NotImplementedError

    def finish(self) -> None:
        raise NotImplementedError


class Chat(Wire):
    """OpenAI chat completions."""

    name = "chat"
    _reasons = True

    @classmethod
    def read(cls, body: dict[str, Any]) -> Talk:
        return _talk([(message["role"], _plain(message.get("content"))) for message in body["messages"]])

    def _event(self, **more: object) -> None:
        chunk = {"id": self._id, "object": "chat.completion.chunk", "created": 0, "model": self.model, **more}
        self._send(b"data: " + json.dumps(chunk).encode() + b"\n\n")

    def _delta(self, delta: dict[str, Any], reason: str | None = None) -> None:
        self._event(choices=[{"index": 0, "delta": delta, "finish_reason": reason}])

    def begin(self) -> None:
        self._reason = "stop"
        self._delta({"role": "assistant", "content": ""})

    def words(self, text: str) -> None:
        self._delta({"content": text})

    def tool(self, name: str, arguments: dict[str, str]) -> None:
        self._reason = "tool_calls"
        function = {"name": name, "arguments": json.dumps(arguments)}
        call = {"index": 0, "id": f"call-{self._id}", "type": "function", "function": function}
        self._delta({"tool_calls": [call]})

    def finish(self) -> None:
        told = self.numbers
        self._delta({}, self._reason)
        self._event(
            choices=[],
            usage={
                "prompt_tokens": told["input"] + told["cache_read"],
                "completion_tokens": told["output"],
                "total_tokens": told["input"] + told["cache_read"] + told["output"],
                "prompt_tokens_details": {"cached_tokens": told["cache_read"]},
                "completion_tokens_details": {"reasoning_tokens": told["reasoning"]},
            },
        )
        self._send(b"data: [DONE]\n\n")


class Messages(Wire):
    """Anthropic messages."""

    name = "messages"
    _writes = True

    @classmethod
    def read(cls, body: dict[str, Any]) -> Talk:
        events: list[tuple[str, str]] = []
        for message in body["messages"]:
            content = message["content"]
            parts = content if isinstance(content, list) else []
            events += [("tool", _plain(part.get("content"))) for part in parts if part.get("type") == "tool_result"]
            events.append((message["role"], _plain(content)))
        return _talk(events)

    @classmethod
    def failure(cls, code: int) -> dict[str, Any]:
        return {"type": "error", "error": {"type": "api_error", "message": f"as scripted: {code}"}}

    def _event(self, kind: str, **more: object) -> None:
        self._send(f"event: {kind}\ndata: {json.dumps({'type': kind, **more})}\n\n".encode())

    def _usage(self, output: int) -> dict[str, int]:
        told = self.numbers
        return {
            "input_tokens": told["input"],
            "cache_read_input_tokens": told["cache_read"],
            "cache_creation_input_tokens": told["cache_write"],
            "output_tokens": output,
        }

    def begin(self) -> None:
        self._reason, self._block, self._open = "end_turn", 0, False
        self.told = self.numbers | {"output": 1}
        message = {"id": self._id, "type": "message", "role": "assistant", "model": self.model}
        more: dict[str, object] = {
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": self._usage(1),
        }
        self._event("message_start", message=message | more)

    def words(self, text: str) -> None:
        if not self._open:
            self._event("content_block_start", index=self._block, content_block={"type": "text", "text": ""})
            self._open = True
        self._event("content_block_delta", index=self._block, delta={"type": "text_delta", "text": text})

    def _stop_block(self) -> None:
        if self._open:
            self._event("content_block_stop", index=self._block)
            self._block, self._open = self._block + 1, False

    def tool(self, name: str, arguments: dict[str, str]) -> None:
        self._stop_block()
        self._reason, self._open = "tool_use", True
        block = {"type": "tool_use", "id": f"toolu-{self._id}", "name": name, "input": {}}
        self._event("content_block_start", index=self._block, content_block=block)
        delta = {"type": "input_json_delta", "partial_json": json.dumps(arguments)}
        self._event("content_block_delta", index=self._block, delta=delta)

    def finish(self) -> None:
        self._stop_block()
        delta = {"stop_reason": self._reason, "stop_sequence": None}
        self._event("message_delta", delta=delta, usage=self._usage(self.numbers["output"]))
        self._event("message_stop")


class Gemini(Wire):
    """Google's generateContent, streamed. Its model stands in the path, not in the body."""

    name = "gemini"
    _reasons = True

    @classmethod
    def read(cls, body: dict[str, Any]) -> Talk:
        events: list[tuple[str, str]] = []
        for content in body["contents"]:
            parts = content["parts"]
            answers = [part["functionResponse"]["response"] for part in parts if "functionResponse" in part]
            events += [("tool", str(answer.get("output", answer))) for answer in answers]
            text = "\n".join(str(part["text"]) for part in parts if part.get("text"))
            if content["role"] == "model" or text:
                events.append(("assistant" if content["role"] == "model" else "user", text))
        return _talk(events)

    @classmethod
    def tools(cls, body: dict[str, Any]) -> list[str]:
        groups = body.get("tools") or []
        return [str(tool["name"]) for group in groups for tool in group.get("functionDeclarations", [])]

    @classmethod
    def failure(cls, code: int) -> dict[str, Any]:
        status = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 429: "RESOURCE_EXHAUSTED"}.get(code, "INTERNAL")
        return {"error": {"code": code, "message": f"as scripted: {code}", "status": status}}

    def _part(self, part: dict[str, Any], reason: str = "", **more: object) -> None:
        candidate = {"content": {"role": "model", "parts": [part]}, "index": 0}
        said = {"candidates": [candidate | ({"finishReason": reason} if reason else {})], "responseId": self._id}
        self._send(b"data: " + json.dumps(said | {"modelVersion": self.model} | more).encode() + b"\n\n")

    def begin(self) -> None:
        """Nothing comes before the words."""

    def words(self, text: str) -> None:
        self._part({"text": text})

    def tool(self, name: str, arguments: dict[str, str]) -> None:
        own = {"bash": "run_shell_command"}.get(name, name)
        self._part({"functionCall": {"name": own, "args": arguments, "id": f"call-{self._id}"}})

    def finish(self) -> None:
        told = self.numbers
        prompt = told["input"] + told["cache_read"]
        usage = {
            "promptTokenCount": prompt,
            "cachedContentTokenCount": told["cache_read"],
            "candidatesTokenCount": told["output"] - told["reasoning"],
            "thoughtsTokenCount": told["reasoning"],
            "totalTokenCount": prompt + told["output"],
        }
        self._part({"text": ""}, "STOP", usageMetadata=usage)


class Responses(Wire):
    """OpenAI responses."""

    name = "responses"
    _reasons = True

    @classmethod
    def read(cls, body: dict[str, Any]) -> Talk:
        events: list[tuple[str, str]] = []
        for item in body["input"]:
            kind = item.get("type", "message")
            if kind == "message":
                parts = item["content"] if isinstance(item["content"], list) else []
                events.append((item["role"], "\n".join(str(part.get("text", "")) for part in parts)))
            elif kind.endswith("_call_output"):
                events.append(("tool", str(item.get("output"))))
        return _talk(events)

    @classmethod
    def tools(cls, body: dict[str, Any]) -> list[str]:
        named: list[str] = []
        for tool in body.get("tools") or []:
            name = str(tool.get("name") or tool["type"])
            named += [f"{name}__{each['name']}" for each in tool["tools"]] if "tools" in tool else [name]
        return named

    def _event(self, kind: str, **more: object) -> None:
        self._send(f"event: {kind}\ndata: {json.dumps({'type': kind, **more})}\n\n".encode())

    def _answer(self, status: str, **more: object) -> dict[str, Any]:
        return {"id": self._id, "object": "response", "status": status, "model": self.model, "output": []} | more

    def begin(self) -> None:
        self._items: list[dict[str, Any]] = []
        self._said: str | None = None
        self._event("response.created", response=self._answer("in_progress"))

    def words(self, text: str) -> None:
        at = {"output_index": len(self._items), "item_id": f"msg-{self._id}"}
        if self._said is None:
            self._said = ""
            self._event("response.output_item.added", **at, item=self._message([]))
        self._said += text
        self._event("response.output_text.delta", **at, content_index=0, delta=text)

    def _message(self, content: list[dict[str, str]]) -> dict[str, Any]:
        return {"id": f"msg-{self._id}", "type": "message", "role": "assistant", "content": content}

    def _done(self, item: dict[str, Any]) -> None:
        self._event("response.output_item.done", output_index=len(self._items), item=item)
        self._items.append(item)

    def _close(self) -> None:
        if self._said is not None:
            self._done(self._message([{"type": "output_text", "text": self._said}]))
            self._said = None

    def tool(self, name: str, arguments: dict[str, str]) -> None:
        self._close()
        own, given = name, dict[str, object](arguments)
        if name == "bash":  # codex's shell gives a command that goes on back to the model after a while
            own, given = "exec_command", {"cmd": arguments["command"], "yield_time_ms": 30_000}
        item = {"id": f"fc-{self._id}", "type": "function_call", "call_id": f"call-{self._id}", "name": own}
        self._event("response.output_item.added", output_index=len(self._items), item=item | {"arguments": ""})
        self._done(item | {"arguments": json.dumps(given)})

    def finish(self) -> None:
        self._close()
        told = self.numbers
        entered = told["input"] + told["cache_read"]
        usage = {
            "input_tokens": entered,
            "input_tokens_details": {"cached_tokens": told["cache_read"]},
            "output_tokens": told["output"],
            "output_tokens_details": {"reasoning_tokens": told["reasoning"]},
            "total_tokens": entered + told["output"],
        }
        self._event("response.completed", response=self._answer("completed", output=self._items, usage=usage))


#: The end of a request's path and the wire that is spoken there.
WIRES: dict[str, type[Wire]] = {
    "/chat/completions": Chat,
    "/messages": Messages,
    "/responses": Responses,
    ":streamGenerateContent": Gemini,
}
