"""FakeGitHub: what a test starts, sets up, breaks and looks at; and the HTTP of its two hosts."""

from __future__ import annotations

import copy
import hashlib
import json
import re
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from contract import violations

from . import routes
from .routes import Refusal, Reply, Request, error
from .state import Artifact, LabelEvent, Pull, State, Token

_WORKFLOW_PERMISSIONS = {
    "contents": "read",
    "issues": "write",
    "pull_requests": "write",
    "checks": "write",
    "actions": "read",
}
_RATE_LIMIT = 5000
_RATE_RESET_EPOCH_S = 1767229200
_BROKEN_CONNECTION = 0
# A mistake of this fake, or a request it does not foresee: a status that no client
# tries again and no contract allows.
_CRASH = 418


@dataclass(slots=True)
class Order:
    """What the next `times` requests of a method ("*" is any) and a path (searched, without the query) meet.

    `what` is a delay in seconds, a function that is called, or an answer in place of
    the real one; where an answer is `served`, the request takes effect all the same.
    """

    method: str
    path: re.Pattern[str]
    times: int
    what: Any
    served: bool = False


class FakeGitHub:
    """GitHub with one repository, as two real HTTP servers: `url` is the API's root, `blob_url` the artifacts' host.

    Reading is open to every known token. Setting up and looking is safe while requests
    are served.
    """

    def __init__(self, repo: str = "octo/repo") -> None:
        self.state, self.lock = State(repo), threading.RLock()
        self._orders: dict[str, list[Order]] = {"answer": [], "delay": [], "call": []}
        self._traffic: list[dict[str, Any]] = []
        self._blob_requests: list[dict[str, Any]] = []

    def __enter__(self) -> FakeGitHub:
        """Start both servers, on free ports."""
        self._servers = [Server(self, ApiHandler), Server(self, BlobHandler)]
        self.state.url = self.url = f"http://127.0.0.1:{self._servers[0].server_port}"
        self.state.blob_url = f"http://localhost:{self._servers[1].server_port}"
        return self

    def __exit__(self, *_: object) -> None:
        """Stop both servers, whatever happened."""
        for server in self._servers:
            server.shutdown()
            server.server_close()

    # Setting up

    def token(
        self,
        login: str = "github-actions[bot]",
        kind: str = "installation",
        permissions: Mapping[str, str] = _WORKFLOW_PERMISSIONS,
    ) -> str:
        """A new token; `kind` is "installation" or "user"."""
        with self.lock:
            secret = f"ghs_{len(self.state.tokens):036d}"
            self.state.tokens[secret] = Token(login, kind, dict(permissions))
            self.state.users.setdefault(
                login, "none" if login.endswith("[bot]") else "write"
            )
            return secret

    def add_user(self, login: str, permission: str = "write") -> None:
        """`permission` is admin, write, read or none."""
        with self.lock:
            self.state.users[login] = permission

    def add_commit(self, sha: str, parents: Sequence[str] = ()) -> None:
        with self.lock:
            self.state.add_commit(sha, parents)

    def set_branch(self, name: str, sha: str) -> None:
        with self.lock:
            self.state.branches[name] = sha

    def set_history(self, clone: Path) -> None:
        """Trees, commits and diffs are those of this clone; strangers may read them."""
        with self.lock:
            self.state.clone = clone

    def add_pull(
        self,
        number: int,
        head_sha: str,
        base_ref: str = "main",
        head_repo: str | None = "octo/repo",
        base_sha: str = "",
        **fields: Any,
    ) -> None:
        """A pull request, or a new state of a known one.

        Its commits become known, where they are not.

        A merge commit has the base as its first parent; `fields` are further ones of
        `Pull`.
        """
        base_sha = (
            base_sha
            or hashlib.sha1(base_ref.encode(), usedforsecurity=False).hexdigest()
        )
        with self.lock:
            pull = self.state.pulls[number] = Pull(
                number=number,
                head_sha=head_sha,
                base_ref=base_ref,
                base_sha=base_sha,
                head_repo=head_repo,
                **fields,
            )
            self.state.users.setdefault(pull.login, "read")
            for sha, parents in (
                (base_sha, ()),
                (head_sha, (base_sha,)),
                (pull.merge_sha, (base_sha, head_sha)),
            ):
                self.state.add_commit(sha, parents, anew=False)

    def set_pull(self, number: int, **changes: Any) -> None:
        """Changes fields of a pull request: `head_sha`, `state`, `merge_sha`, ..."""
        with self.lock:
            pull = self.state.pulls[number]
            for name, value in changes.items():
                setattr(pull, name, value)
            for sha in (changes.get("head_sha"), changes.get("merge_sha")):
                self.state.add_commit(sha, [pull.base_sha], anew=False)

    def merge_pull(
        self,
        number: int,
        sha: str,
        parents: Sequence[str] = (),
        merged_at: str = "2026-01-02T00:00:00Z",
    ) -> None:
        """Somebody merges a pull request, which becomes this commit of its base branch."""
        with self.lock:
            self.state.add_commit(sha, parents, anew=False)
        self.set_pull(number, state="closed", merge_sha=sha, merged_at=merged_at)

    def add_issue(self, login: str, title: str, body: str) -> int:
        """An issue written by hand; its number."""
        with self.lock:
            return self.state.add_issue(login, title, body).number

    def set_issue(self, number: int, **changes: Any) -> None:
        """Somebody changes fields of an issue: `state`, `body`, ..."""
        with self.lock:
            for name, value in changes.items():
                setattr(self.state.issues[number], name, value)

    def turn_issues_off(self) -> None:
        with self.lock:
            self.state.has_issues = False

    def change_base(
        self, number: int, base_ref: str, changed_at: str, **changes: Any
    ) -> None:
        """Somebody gives a pull request another base branch; `changes` as in `set_pull`."""
        self.set_pull(number, base_ref=base_ref, **changes)
        with self.lock:
            login = self.state.pulls[number].login
            self.state.events.append(
                LabelEvent(
                    id=self.state.next_id(),
                    issue=number,
                    label="",
                    login=login,
                    event="base_ref_changed",
                    created_at=changed_at,
                )
            )

    def add_comment(self, issue: int, login: str, body: str) -> int:
        """A comment written by hand; its id."""
        with self.lock:
            return self.state.add_comment(issue, login, body).id

    def edit_comment(self, comment_id: int, body: str) -> None:
        """Somebody writes another text into a comment."""
        with self.lock:
            edited = self.state.comments[comment_id]
            edited.body, edited.updated_at = body, self.state.now()

    def delete_comment(self, comment_id: int) -> None:
        with self.lock:
            del self.state.comments[comment_id]

    def add_label(self, issue: int, label: str, by: str) -> int:
        """The id of the labeled event."""
        with self.lock:
            self.state.labels.setdefault(issue, []).append(label)
            return self._label_event(issue, label, by, "labeled")

    def remove_label(self, issue: int, label: str) -> int:
        """The id of the unlabeled event."""
        with self.lock:
            self.state.labels[issue].remove(label)
            return self._label_event(issue, label, "octocat", "unlabeled")

    def _label_event(self, issue: int, label: str, login: str, event: str) -> int:
        label_event = LabelEvent(
            id=self.state.next_id(),
            issue=issue,
            label=label,
            login=login,
            event=event,
            created_at=self.state.now(),
        )
        self.state.events.append(label_event)
        return label_event.id

    def add_artifact(
        self, run_id: int, name: str, zip_bytes: bytes, expired: bool = False
    ) -> int:
        """An artifact of a run; its id."""
        with self.lock:
            artifact = Artifact(
                id=self.state.next_id(),
                run_id=run_id,
                created_at=self.state.now(),
                name=name,
                zip_bytes=zip_bytes,
                expired=expired,
            )
            self.state.artifacts[artifact.id] = artifact
            return artifact.id

    # Breaking

    def _order(
        self,
        kind: str,
        method: str,
        path_regex: str,
        times: int,
        reaction: Any,
        served: bool = False,
    ) -> None:
        with self.lock:
            self._orders[kind].append(
                Order(
                    method=method,
                    path=re.compile(path_regex),
                    times=times,
                    what=reaction,
                    served=served,
                )
            )

    def ordered(self, kind: str, method: str, path: str) -> Order | None:
        """The oldest order for this request, used up by one; None where there is none."""
        with self.lock:
            for order in self._orders[kind]:
                if (
                    order.times > 0
                    and order.method in ("*", method)
                    and order.path.search(path)
                ):
                    order.times -= 1
                    return order
        return None

    def fail_next(
        self,
        method: str,
        path_regex: str,
        status: int,
        times: int = 1,
        headers: Mapping[str, str] | None = None,
        body: object = None,
        served: bool = False,
    ) -> None:
        """The next `times` requests get `status` instead; 0 breaks the connection.

        `body` is JSON, text or bytes.

        With `served` the requests take effect before their answers are lost.
        """
        body = error("Fault ordered by the test") if body is None else body
        self._order(
            "answer",
            method,
            path_regex,
            times,
            Reply(status, body, headers or {}),
            served,
        )

    def forget_faults(self) -> None:
        """No request fails any more."""
        with self.lock:
            self._orders["answer"].clear()

    def delay_next(self, method: str, path_regex: str, seconds: float) -> None:
        """The next request waits before it is served."""
        self._order("delay", method, path_regex, 1, seconds)

    def before(
        self,
        method: str,
        path_regex: str,
        callback: Callable[[], object],
        times: int = 1,
    ) -> None:
        """`callback` runs just before the next such request is served: what somebody else does in between."""
        self._order("call", method, path_regex, times, callback)

    # Looking

    @property
    def traffic(self) -> list[dict[str, Any]]:
        """All exchanges with the API, in the form that `contract.violations` takes."""
        with self.lock:
            return list(self._traffic)

    @property
    def blob_requests(self) -> list[dict[str, Any]]:
        """What reached the artifacts' host: `path`, `authorization` (None is right), `headers`."""
        with self.lock:
            return list(self._blob_requests)

    def comments(self, issue: int) -> list[dict[str, Any]]:
        with self.lock:
            return [
                routes.comment(self.state, comment)
                for comment in self.state.comments.values()
                if comment.issue == issue
            ]

    @property
    def issues(self) -> list[dict[str, Any]]:
        """All issues, the oldest first."""
        with self.lock:
            return [
                routes.issue(self.state, issue) for issue in self.state.issues.values()
            ]

    @property
    def check_runs(self) -> list[dict[str, Any]]:
        """The fields of each check run's requests, its `id`, and all its `annotations`."""
        with self.lock:
            checks = self.state.checks.values()
            return copy.deepcopy(
                [
                    {"id": check.id, **check.fields, "annotations": check.annotations}
                    for check in checks
                ]
            )

    def assert_contract(self) -> None:
        """AssertionError with every violation of GitHub's API description in the traffic so far."""
        broken_rules = violations(self.traffic)
        assert not broken_rules, "\n".join(broken_rules)

    # Serving, under the lock

    def answer(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        text: str,
        order: Order | None,
    ) -> Reply:
        """What the API answers to a request, all headers with it; recorded."""
        split = urlsplit(path)
        if order is None or order.served:
            reply = self._reply(
                method,
                split.path,
                split.query,
                headers.get("Authorization") or "",
                text,
            )
        if order is not None:
            reply = order.what
        used = len(self._traffic) + 1
        rate = {
            "Limit": _RATE_LIMIT,
            "Remaining": max(0, _RATE_LIMIT - used),
            "Used": used,
        }
        sent = {
            "Content-Type": "application/json; charset=utf-8",
            **{f"X-RateLimit-{name}": str(value) for name, value in rate.items()},
            "X-RateLimit-Reset": str(_RATE_RESET_EPOCH_S),
            "X-RateLimit-Resource": "core",
            **reply.headers,
        }
        body = _encoded(reply.body)
        exchange: dict[str, Any] = {
            "method": method,
            "path": split.path,
            "query": split.query,
            "req_headers": dict(headers),
        }
        exchange |= {"req_body": text, "status": reply.status, "res_headers": sent}
        self._traffic.append(
            {
                **exchange,
                "res_body": body.decode("utf-8", "replace"),
                "injected": order is not None,
            }
        )
        return Reply(reply.status, body, sent)

    def _reply(
        self, method: str, path: str, query: str, authorization: str, text: str
    ) -> Reply:
        try:
            token = self._token(method, authorization)
            body = json.loads(text or "{}")
            parameters = dict(parse_qsl(query, keep_blank_values=True))
            return routes.answered(
                self.state,
                Request(
                    method=method,
                    path=unquote(path),
                    url=f"{self.state.url}{path}",
                    query=parameters,
                    body=body,
                    token=token,
                ),
            )
        except Refusal as refusal:
            return refusal.reply
        except Exception:
            return Reply(_CRASH, error(traceback.format_exc()))

    def _token(self, method: str, authorization: str) -> Token:
        scheme, _, secret = authorization.partition(" ")
        if not secret and method == "GET" and self.state.clone is not None:
            return Token("", "stranger", {})
        if not secret:
            raise Refusal(401, "Requires authentication")
        token = self.state.tokens.get(secret.strip())
        if token is None or scheme.lower() not in ("token", "bearer"):
            raise Refusal(401, "Bad credentials")
        return token

    def stored(
        self, path: str, headers: Mapping[str, str], order: Order | None
    ) -> Reply:
        """What the artifacts' host answers."""
        sent = {
            "path": path,
            "authorization": headers.get("Authorization"),
            "headers": dict(headers),
        }
        self._blob_requests.append(sent)
        if order is not None:
            return Reply(
                order.what.status, _encoded(order.what.body), order.what.headers
            )
        number = urlsplit(path).path.removeprefix("/artifacts/").removesuffix(".zip")
        return Reply(
            200,
            self.state.artifacts[int(number)].zip_bytes,
            {"Content-Type": "application/zip"},
        )


class Server(ThreadingHTTPServer):
    """One host on a free port; kept-alive connections do not hold up its end."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, hub: FakeGitHub, handler: type[Handler]) -> None:
        self.hub = hub
        super().__init__(("127.0.0.1", 0), handler)
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def handle_error(self, _request: object, _client_address: object) -> None:
        """A client that did not wait for its answer is no error."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            traceback.print_exc()


class Handler(BaseHTTPRequestHandler):
    """A request of any method, with what was ordered for it; `answer` is left to the two hosts."""

    server: Server
    protocol_version = "HTTP/1.1"
    # A buffered answer leaves in one packet: two would wait for each other (Nagle and
    # delayed acknowledgement).
    wbufsize = -1
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the traffic is recorded."""

    def handle_any(self) -> None:
        text = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode(
            "utf-8", "replace"
        )
        hub = self.server.hub
        request = (self.command, urlsplit(self.path).path)
        if call := hub.ordered("call", *request):
            call.what()
        if delay := hub.ordered("delay", *request):
            time.sleep(delay.what)
        with hub.lock:
            reply = self.answer(text, hub.ordered("answer", *request))
        if reply.status == _BROKEN_CONNECTION:
            self.close_connection = True
            return
        self.send_response(reply.status)
        sent = {"Content-Length": str(len(reply.body)), **reply.headers}
        # ordered: an answer that breaks off
        self.close_connection |= int(sent["Content-Length"]) > len(reply.body)
        for name, value in sent.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(reply.body)

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = handle_any  # noqa: N815 - the base class looks for these names

    def answer(self, text: str, order: Order | None) -> Reply:
        raise NotImplementedError


class BlobHandler(Handler):
    """The host that keeps the artifacts' bytes."""

    def answer(self, _text: str, order: Order | None) -> Reply:
        return self.server.hub.stored(self.path, dict(self.headers), order)


class ApiHandler(Handler):
    """The API's host."""

    def answer(self, text: str, order: Order | None) -> Reply:
        return self.server.hub.answer(
            self.command, self.path, dict(self.headers), text, order
        )


def _encoded(body: object) -> bytes:
    """Bytes and text go out as they are, nothing as nothing, all else as JSON."""
    if body is None or isinstance(body, bytes):
        return body or b""
    return body.encode() if isinstance(body, str) else json.dumps(body).encode()
