"""FakeGitHub: what a test starts, sets up, breaks and looks at."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from contract import violations

from . import rendering as render
from .faults import Fault
from .server import ApiHandler, BlobHandler, Hub, Server
from .state import Artifact, CheckRun, LabelEvent, Pull, Run, State, Token

_WORKFLOW_PERMISSIONS = {
    "contents": "read",
    "issues": "write",
    "pull_requests": "write",
    "checks": "write",
    "actions": "read",
}


class FakeGitHub:
    """GitHub with one repository, as two real HTTP servers: `url` is the API's root, `blob_url` the artifacts' host.

    Reading is open to every known token unless `private`. Setting up and looking is safe while requests are served.
    """

    def __init__(self, repo: str = "octo/repo", private: bool = False) -> None:
        self._hub = Hub(State(repo, private))
        self._state, self._lock = self._hub.state, self._hub.lock

    def __enter__(self) -> FakeGitHub:
        """Start both servers, on free ports."""
        self._servers = [Server(self._hub, ApiHandler), Server(self._hub, BlobHandler)]
        self._state.url = f"http://127.0.0.1:{self._servers[0].port}"
        self._state.blob_url = f"http://localhost:{self._servers[1].port}"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop both servers, whatever happened."""
        for server in self._servers:
            server.stop()

    @property
    def url(self) -> str:
        return self._state.url

    @property
    def blob_url(self) -> str:
        return self._state.blob_url

    # Setting up

    def token(
        self,
        login: str = "github-actions[bot]",
        kind: str = "installation",
        permissions: Mapping[str, str] = _WORKFLOW_PERMISSIONS,
    ) -> str:
        """A new token; `kind` is "installation" or "user"."""
        with self._lock:
            secret = f"ghs_{len(self._state.tokens):036d}"
            self._state.tokens[secret] = Token(login, kind, dict(permissions))
            self._state.users.setdefault(login, "none" if login.endswith("[bot]") else "write")
            return secret

    def add_user(self, login: str, permission: str = "write") -> None:
        """`permission` is admin, write, read or none."""
        with self._lock:
            self._state.users[login] = permission

    def add_commit(self, sha: str, parents: Sequence[str] = ()) -> None:
        with self._lock:
            self._state.add_commit(sha, parents)

    def set_branch(self, name: str, sha: str) -> None:
        with self._lock:
            self._state.branches[name] = sha

    def set_history(self, clone: Path, truncated: bool = False) -> None:
        """Trees, commits and diffs are those of this clone; strangers may read them."""
        with self._lock:
            self._state.clone, self._state.truncated = clone, truncated

    def add_issue(self, number: int, title: str = "") -> None:
        with self._lock:
            self._state.titles[number] = title or f"Issue {number}"

    def add_pull(
        self,
        number: int,
        head_sha: str,
        base_ref: str = "main",
        head_repo: str | None = None,
        head_branch: str = "topic",
        state: str = "open",
        merge_sha: str | None = None,
        base_sha: str | None = None,
        login: str = "octocat",
        title: str = "",
        files: Sequence[str] = (),
        fork_deleted: bool = False,
        created_at: str = "2026-01-01T00:00:00Z",
    ) -> None:
        """A pull request, or a new state of a known one; its commits become known, where they are not.

        `head_repo` None is the repository itself; a merge commit has the base as its first parent.
        """
        base_sha = base_sha or hashlib.sha1(base_ref.encode(), usedforsecurity=False).hexdigest()
        home = None if fork_deleted else head_repo or self._state.repo
        given = (base_sha, base_ref, home, head_branch, state, merge_sha, login, title or f"Pull {number}")
        with self._lock:
            self._state.users.setdefault(login, "read")
            self._state.pulls[number] = Pull(number, head_sha, *given, tuple(files), created_at)
            parents = {base_sha: (), head_sha: (base_sha,), merge_sha or head_sha: (base_sha, head_sha)}
            for sha, known in parents.items():
                if sha not in self._state.commits:
                    self._state.add_commit(sha, [one for one in known if one != sha])

    def set_pull(self, number: int, **changes: Any) -> None:
        """Changes fields of a pull request: `head_sha`, `state`, `merge_sha`, ..."""
        with self._lock:
            for name, value in changes.items():
                setattr(self._state.pulls[number], name, value)
            for sha in (changes.get("head_sha"), changes.get("merge_sha")):
                if sha and sha not in self._state.commits:
                    self._state.add_commit(sha, [self._state.pulls[number].base_sha])

    def change_base(self, number: int, base_ref: str, at: str, **changes: Any) -> None:
        """Somebody gives a pull request another base branch; `changes` as in `set_pull`."""
        self.set_pull(number, base_ref=base_ref, **changes)
        with self._lock:
            login = self._state.pulls[number].login
            self._state.events.append(LabelEvent(self._state.next_id(), number, "", login, "base_ref_changed", at))

    def add_comment(self, issue: int, login: str, body: str) -> int:
        """A comment written by hand; its id."""
        with self._lock:
            return self._state.add_comment(issue, login, body).id

    def delete_comment(self, comment_id: int) -> None:
        with self._lock:
            del self._state.comments[comment_id]

    def add_label(self, issue: int, label: str, by: str) -> int:
        """The id of the labeled event."""
        return self._change_label(issue, label, by, "labeled")

    def remove_label(self, issue: int, label: str, by: str = "octocat") -> int:
        """The id of the unlabeled event."""
        return self._change_label(issue, label, by, "unlabeled")

    def _change_label(self, issue: int, label: str, login: str, event: str) -> int:
        with self._lock:
            self._state.titles.setdefault(issue, f"Issue {issue}")
            found = self._state.change_label(issue, label, login, event)
        assert found is not None, f"label {label} of issue {issue} is {event} already"
        return found

    def add_run(
        self,
        run_id: int,
        head_sha: str = "0" * 40,
        event: str = "pull_request",
        head_branch: str = "topic",
        head_repo: str | None = None,
        status: str = "completed",
        conclusion: str | None = "success",
        path: str = ".github/workflows/code-size.yml",
        name: str = "Code size",
        login: str = "octocat",
        pull_numbers: Sequence[int] = (),
        run_attempt: int = 1,
    ) -> None:
        """A workflow run; GitHub lists no `pull_numbers` for a run of a fork."""
        with self._lock:
            self._state.runs[run_id] = Run(
                id=run_id,
                head_sha=head_sha,
                event=event,
                head_branch=head_branch,
                head_repo=head_repo or self._state.repo,
                status=status,
                conclusion=conclusion,
                path=path,
                name=name,
                login=login,
                pull_numbers=tuple(pull_numbers),
                run_attempt=run_attempt,
                created_at=self._state.now(),
            )

    def add_artifact(
        self,
        run_id: int,
        name: str,
        zip_bytes: bytes,
        head_sha: str = "0" * 40,
        head_branch: str = "main",
        same_repository: bool = True,
        expired: bool = False,
    ) -> int:
        """An artifact of a run, which becomes known where it is not; its id."""
        with self._lock:
            if run_id not in self._state.runs:
                home = self._state.repo if same_repository else "fork/repo"
                event = "push" if same_repository else "pull_request"
                self.add_run(run_id, head_sha, event, head_branch, home)
            number = self._state.next_id()
            source = (head_sha, head_branch, same_repository, expired, self._state.now())
            self._state.artifacts[number] = Artifact(number, run_id, name, zip_bytes, *source)
            return number

    # Breaking

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
        """The next `times` requests get `status` instead; 0 breaks the connection. `body` is JSON, text or bytes.

        With `served` the requests take effect before their answers are lost.
        """
        self._hub.faults.answers.add(method, path_regex, Fault(status, dict(headers or {}), body, served), times)

    def forget_faults(self) -> None:
        """No request fails any more."""
        self._hub.faults.answers.clear()

    def delay_next(self, method: str, path_regex: str, seconds: float, times: int = 1) -> None:
        """The next `times` requests wait before they are served."""
        self._hub.faults.delays.add(method, path_regex, seconds, times)

    def before(self, method: str, path_regex: str, callback: Callable[[], object], times: int = 1) -> None:
        """`callback` runs just before the next such request is served: what somebody else does in between."""
        self._hub.faults.callbacks.add(method, path_regex, callback, times)

    # Looking

    @property
    def traffic(self) -> list[dict[str, Any]]:
        """All exchanges with the API, in the form that `contract.violations` takes."""
        with self._lock:
            return list(self._hub.traffic)

    @property
    def blob_requests(self) -> list[dict[str, Any]]:
        """What reached the artifacts' host: `path`, `authorization` (None is right), `headers`."""
        with self._lock:
            return list(self._hub.blob_requests)

    def comments(self, issue: int) -> list[dict[str, Any]]:
        with self._lock:
            return [render.comment(self._state, one) for one in self._state.comments.values() if one.issue == issue]

    def labels(self, issue: int) -> list[str]:
        with self._lock:
            return list(self._state.labels.get(issue, ()))

    @property
    def check_runs(self) -> list[dict[str, Any]]:
        """The fields of each check run's requests, its `id`, and all its `annotations`."""
        with self._lock:
            return [_check_run(one) for one in self._state.checks.values()]

    @property
    def reactions(self) -> list[dict[str, Any]]:
        """`id`, `comment_id`, `content` and `user` of each."""
        with self._lock:
            return copy.deepcopy(self._state.reactions)

    @property
    def reruns(self) -> list[int]:
        """The ids of the runs that were started again."""
        with self._lock:
            return list(self._state.reruns)

    @property
    def dispatches(self) -> list[dict[str, Any]]:
        """`workflow`, `ref` and `inputs` of each."""
        with self._lock:
            return copy.deepcopy(self._state.dispatches)

    def assert_contract(self) -> None:
        """AssertionError with every violation of GitHub's API description in the traffic so far."""
        found = violations(self.traffic)
        assert not found, "\n".join(found)


def _check_run(one: CheckRun) -> dict[str, Any]:
    return copy.deepcopy({"id": one.id, **one.fields, "annotations": one.annotations})
