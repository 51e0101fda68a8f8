"""bot.system.downloads: whole files over TLS, from hosts that may be asked; one clear line for everything else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from https_site import Page, Site, serving

from bot.errors import Interrupted, NetworkError
from bot.system.downloads import MOST_REDIRECTS, is_allowed, pieces, shown
from bot.system.processes import Cancel

TEXT = b"func.func @main() { return }\n" * 5000


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    with serving(tmp_path, monkeypatch) as site:
        yield site


def fetched(url: str, most_bytes: int = 1 << 20, private: tuple[str, ...] = ("localhost",)) -> bytes:
    return b"".join(pieces(url, most_bytes, Cancel().check, private=private, tries=2))


def refusal(url: str, most_bytes: int = 1 << 20, private: tuple[str, ...] = ("localhost",)) -> str:
    with pytest.raises(NetworkError) as refused:
        fetched(url, most_bytes, private)
    line = refused.value.line
    assert line.startswith(f"{shown(url)}: ") and "\n" not in line
    return line.removeprefix(f"{shown(url)}: ")


def redirect(to: str) -> Page:
    return Page(status=302, headers={"Location": to})


def test_a_file_comes_whole_and_its_query_is_sent_and_not_told(site: Site) -> None:
    url = site.put("/a.mlir?sig=secret", Page(TEXT))
    assert fetched(url, len(TEXT)) == TEXT and site.asked == {"/a.mlir?sig=secret": 1}
    site.put("/busy", Page(b"busy", 503), Page(TEXT))
    site.put("/second", redirect("busy"))
    assert fetched(site.put("/first", redirect(f"{site.url}/second"))) == TEXT and site.asked["/busy"] == 2
    assert "secret" not in refusal(site.url + "/b.mlir?sig=secret") and "secret" not in shown(url)


SECRET_OF_CLOUDS = "https://169.254.169.254/latest/meta-data/"
REFUSED = {
    "broke off before its end: ": Page(TEXT[:500], missing_bytes=10),
    f"has {len(TEXT):,} bytes, and 1,000 are allowed (raise max_size of the suite)": Page(TEXT),
    "has more than 1,000 bytes (raise max_size of the suite)": Page(TEXT, tells_length=False),
    "is sent in a packed form that was not asked for": Page(b"\x1f", headers={"Content-Encoding": "gzip"}),
    "169.254.169.254 is no public address": redirect(SECRET_OF_CLOUDS),
    **{f"the server answers {status}": Page(b"no", status) for status in (400, 401, 403, 404, 410, 500, 304)},
    **{
        f"redirects to {to}, which is no https address": redirect(to)
        for to in ("http://localhost/a.mlir", "file:///etc/passwd", "ftp://localhost/a", "https://user@localhost/a")
    },
}


@pytest.mark.parametrize("line", REFUSED)
def test_an_answer_that_is_not_all_of_it_is_refused(site: Site, line: str) -> None:
    said = refusal(site.put("/a.mlir", REFUSED[line]), 1000)
    assert said.startswith(line) and said.endswith("(run it again)") is line.startswith("broke off")


@pytest.mark.parametrize("loops", ["/loop", "/again"])
def test_a_loop_of_redirects_ends(site: Site, loops: str) -> None:
    site.put("/again", redirect("/loop"))
    assert refusal(site.put("/loop", redirect(loops))) == f"redirects more than {MOST_REDIRECTS} times"
    assert sum(site.asked.values()) == MOST_REDIRECTS + 1


@pytest.mark.parametrize(
    "url",
    ["http://localhost/a.mlir", "https:///a.mlir", "https://[::1/a", "a.mlir", "https://a:99999/", "https://\u4f8b/a"],
)
def test_an_address_that_is_not_https_is_refused_before_anything_is_asked(url: str) -> None:
    assert refusal(url).startswith("is no https address")


def test_a_host_of_this_machine_must_be_named(site: Site) -> None:
    url = site.put("/a.mlir", Page(TEXT))
    assert "no public address" in refusal(url, private=())
    assert "no public address" in refusal(url.replace("localhost", "127.0.0.1"))
    assert not site.asked


def test_a_proxy_does_not_make_an_inner_address_an_outer_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    assert "no public address" in refusal("https://10.0.0.1/a.mlir")
    assert "Unable to connect to proxy" in refusal("https://example.invalid/a.mlir")


def test_a_certificate_of_another_host_is_refused(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    url = site.put("/a.mlir", Page(TEXT))
    monkeypatch.delenv("REQUESTS_CA_BUNDLE")
    assert "certificate verify failed" in refusal(url).lower()
    assert not site.asked


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a..b", "x" * 70, "a b"])
def test_a_host_that_nobody_knows_is_told(host: str) -> None:
    assert refusal(f"https://{host}/a.mlir").startswith(f"{host} is not known: ")


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:9", "127.0.0.1:9", "http://user:word@127.0.0.1:9"])
def test_a_proxy_that_cannot_be_used_is_told(proxy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", proxy)
    monkeypatch.delenv("NO_PROXY", raising=False)
    said = refusal("https://example.invalid/a.mlir")
    assert said and "word" not in said


def test_a_server_that_is_gone_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(tmp_path, monkeypatch) as gone:
        pass
    assert "Connection refused" in refusal(f"{gone.url}/a.mlir")


def test_it_ends_when_the_run_does(site: Site) -> None:
    cancel = Cancel()
    cancel.set()
    with pytest.raises(Interrupted):
        list(pieces(site.put("/a.mlir", Page(TEXT)), 1 << 20, cancel.check, private=("localhost",)))


PUBLIC = ("140.82.112.3", "2606:50c0:8000::153", "64:ff9b::8c52:7003")
INNER = ("127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "100.64.0.1", "::1", "fd00::1", "::ffff:10.0.0.1")
NEVER = (
    "169.254.169.254", "fe80::1%eth0", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1", "0.0.0.0",  # noqa: S104
    "::", "224.0.0.1", "ff02::1", "168.63.129.16",
)  # fmt: skip


def test_which_addresses_are_allowed_and_which_where_their_host_is_named() -> None:
    assert all(is_allowed(one) and is_allowed(one, is_private=True) for one in PUBLIC)
    assert all(not is_allowed(one) and is_allowed(one, is_private=True) for one in INNER)
    assert not any(is_allowed(one) or is_allowed(one, is_private=True) for one in NEVER)
