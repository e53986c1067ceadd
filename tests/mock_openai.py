"""An OpenAI-compatible server on 127.0.0.1 whose replies a test decides."""

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

# A text, None for a message without content, or an HTTP status for a request that fails.
Reply = str | int | None


class MockOpenAI:
    """Answers chat completions with what ``reply`` makes of a prompt; use it as a context.

    ``requests`` holds the body of every request that came in.
    """

    def __init__(self, reply: Callable[[str], Reply]) -> None:
        self.requests: list[dict[str, Any]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(reply, self.requests))
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> "MockOpenAI":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def prompt_of(body: dict[str, Any]) -> str:
    """Return the text parts of a request's messages."""
    parts = [part for message in body["messages"] for part in message["content"]]
    return "\n".join(part["text"] for part in parts if part["type"] == "text")


def _handler(
    reply: Callable[[str], Reply], requests: list[dict[str, Any]]
) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            requests.append(body)
            content = reply(prompt_of(body))
            if isinstance(content, int):
                # As real servers do, the message holds numbers that are no box.
                self._send(content, {"error": {"message": "overloaded, retry in [10, 20, 30, 40]"}})
            else:
                message = {"role": "assistant", "content": content}
                choice = {"index": 0, "message": message, "finish_reason": "stop"}
                usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
                self._send(200, {"id": "0", "object": "chat.completion", "created": 0, "model": "m",
                                 "choices": [choice], "usage": usage})  # fmt: skip

        def _send(self, status: int, body: dict[str, Any]) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler
