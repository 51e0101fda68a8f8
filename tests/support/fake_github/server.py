"""The HTTP of the fake GitHub: receives, lets the ordered faults happen, checks the token, answers and records."""

from __future__ import annotations

import json
import sys
import threading
import time
import traceback
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from . import action_routes, history_routes, issue_routes, routes
from .faults import Fault, Faults
from .replies import Refusal, Reply, Request, error
from .state import State, Token

_ROUTES = (*issue_routes.ROUTES, *action_routes.ROUTES, *history_routes.ROUTES, *routes.ROUTES)
_RATE_LIMIT = 5000
_RATE_RESET_EPOCH_S = 1767229200
_BROKEN_CONNECTION = 0
# A mistake of this fake, or a request it does not foresee: a status that no client tries again and no contract allows.
_CRASH = 418


@dataclass(slots=True)
class Hub:
    """What both hosts share; `lock` guards all of it."""

    state: State
    faults: Faults = field(default_factory=Faults)
    traffic: list[dict[str, Any]] = field(default_factory=list)
    blob_requests: list[dict[str, Any]] = field(default_factory=list)
    lock: threading.RLock = field(default_factory=threading.RLock)


class Server(ThreadingHTTPServer):
    """One host on a free port; kept-alive connections do not hold up its end."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, hub: Hub, handler: type[Handler]) -> None:
        self.hub = hub
        super().__init__(("127.0.0.1", 0), handler)
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def handle_error(self, _request: object, _client_address: object) -> None:
        """A client that did not wait for its answer is no error."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            traceback.print_exc()

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def stop(self) -> None:
        self.shutdown()
        self.server_close()


class Handler(BaseHTTPRequestHandler):
    """A request of any method, up to its ordered faults; `answer` is left to the two hosts."""

    server: Server
    protocol_version = "HTTP/1.1"
    # A buffered answer leaves in one packet: two would wait for each other (Nagle and delayed acknowledgement).
    wbufsize = -1
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the traffic is recorded."""

    def handle_any(self) -> None:
        text = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode("utf-8", "replace")
        faults, path = self.server.hub.faults, urlsplit(self.path).path
        callback = faults.callbacks.take(self.command, path)
        if callback is not None:
            callback()
        time.sleep(faults.delays.take(self.command, path) or 0)
        self.answer(text, faults.answers.take(self.command, path))

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = handle_any  # noqa: N815 - the base class looks for these names

    def answer(self, text: str, fault: Fault | None) -> None:
        raise NotImplementedError

    def send(self, status: int, headers: dict[str, str], body: bytes) -> None:
        if status == _BROKEN_CONNECTION:
            self.close_connection = True
            return
        self.send_response(status)
        sent = {"Content-Length": str(len(body)), **headers}
        self.close_connection |= int(sent["Content-Length"]) > len(body)  # ordered: an answer that breaks off
        for name, value in sent.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


class BlobHandler(Handler):
    """The host that keeps the artifacts' bytes."""

    def answer(self, _text: str, fault: Fault | None) -> None:
        hub, path = self.server.hub, urlsplit(self.path).path
        with hub.lock:
            sent = {
                "path": self.path,
                "authorization": self.headers.get("Authorization"),
                "headers": dict(self.headers),
            }
            hub.blob_requests.append(sent)
            number = path.removeprefix("/artifacts/").removesuffix(".zip")
            found = hub.state.artifacts.get(int(number)) if number.isdigit() else None
        if fault is not None:
            self.send(fault.status, dict(fault.headers), _encoded(fault.body))
        elif found is None:
            self.send(404, {}, b"")
        else:
            self.send(200, {"Content-Type": "application/zip"}, found.zip_bytes)


class ApiHandler(Handler):
    """The API's host."""

    def answer(self, text: str, fault: Fault | None) -> None:
        hub = self.server.hub
        with hub.lock:
            if fault is None or fault.served:
                reply = self._reply(text)
            if fault is not None:
                reply = _ordered(fault)
            headers = {"Content-Type": "application/json; charset=utf-8", **self._rate(), **reply.headers}
            body = _encoded(reply.body)
            self._record(text, reply.status, headers, body, fault is not None)
        self.send(reply.status, headers, body)

    def _rate(self) -> dict[str, str]:
        used = len(self.server.hub.traffic) + 1
        numbers = {"Limit": _RATE_LIMIT, "Remaining": max(0, _RATE_LIMIT - used), "Used": used}
        rate = {f"X-RateLimit-{name}": str(value) for name, value in numbers.items()}
        return {**rate, "X-RateLimit-Reset": str(_RATE_RESET_EPOCH_S), "X-RateLimit-Resource": "core"}

    def _record(self, text: str, status: int, headers: dict[str, str], body: bytes, injected: bool) -> None:
        split = urlsplit(self.path)
        request = {"method": self.command, "path": split.path, "query": split.query}
        sent = {"req_headers": dict(self.headers), "req_body": text}
        answer = {"status": status, "res_headers": headers, "res_body": body.decode("utf-8", "replace")}
        self.server.hub.traffic.append({**request, **sent, **answer, "injected": injected})

    def _reply(self, text: str) -> Reply:
        try:
            return self._routed(self._token(), text)
        except Refusal as refusal:
            return refusal.reply
        except Exception:
            return Reply(_CRASH, error(traceback.format_exc()))

    def _token(self) -> Token:
        scheme, _, secret = (self.headers.get("Authorization") or "").partition(" ")
        if not secret and self.command == "GET" and self.server.hub.state.clone is not None:
            return Token("", "stranger", {})
        if not secret:
            raise Refusal(401, "Requires authentication")
        token = self.server.hub.state.tokens.get(secret.strip())
        if token is None or scheme.lower() not in ("token", "bearer"):
            raise Refusal(401, "Bad credentials")
        return token

    def _routed(self, token: Token, text: str) -> Reply:
        state, split = self.server.hub.state, urlsplit(self.path)
        request = Request(
            self.command,
            unquote(split.path),
            f"{state.url}{split.path}",
            dict(parse_qsl(split.query, keep_blank_values=True)),
            _decoded(text),
            token,
        )
        if (self.command, request.path) == ("GET", "/user"):
            return routes.get_user(state, request)
        return _in_repository(state, request)


def _in_repository(state: State, request: Request) -> Reply:
    root = f"/repos/{state.repo}"
    below = request.path.removeprefix(root) if request.path.lower().startswith(root.lower()) else "/elsewhere"
    for route in _ROUTES:
        found = route.pattern.fullmatch(below)
        if found and route.method == request.method:
            _check_permission(state, request, route.scopes)
            return route.handler(state, request, *found.groups())
    raise Refusal(404, "Not Found")


def _check_permission(state: State, request: Request, scopes: tuple[str, ...]) -> None:
    """A public repository can be read with any token."""
    if request.method == "GET":
        allowed = not state.private or scopes == ("metadata",) or request.token.may_read(*scopes)
    else:
        allowed = request.token.may_write(*scopes)
    if not allowed:
        raise Refusal(403, "Resource not accessible by integration")


def _decoded(text: str) -> Any:
    try:
        return json.loads(text) if text else {}
    except ValueError:
        raise Refusal(400, "Problems parsing JSON") from None


def _encoded(body: object) -> bytes:
    """Bytes and text go out as they are, nothing as nothing, all else as JSON."""
    if body is None or isinstance(body, bytes):
        return body or b""
    return body.encode() if isinstance(body, str) else json.dumps(body).encode()


def _ordered(fault: Fault) -> Reply:
    body = error("Fault ordered by the test") if fault.body is None else fault.body
    return Reply(fault.status, body, fault.headers)
