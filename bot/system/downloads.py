"""One file over HTTPS as pieces of bytes: bounded in size, time and redirects, and from hosts of the public internet.

The address may be a stranger's. So every name is resolved before anything is connected, every address that it has must
be public, the connection goes to the address that was looked at, and each redirect begins anew. Behind a proxy the
proxy resolves names, and what it lets through is its owner's to say. Plain HTTP is never spoken.
"""

from __future__ import annotations

import contextlib
import ctypes
import ipaddress
import socket
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urljoin, urlsplit

import requests
import urllib3
from requests.utils import DEFAULT_CA_BUNDLE_PATH, get_auth_from_url, select_proxy
from urllib3.exceptions import HTTPError, ProtocolError, ProxySchemeUnknown

from bot.errors import NetworkError

MOST_REDIRECTS = 5
TIMEOUT_SECONDS = 30.0  # For connecting, and for each silence
WHOLE_SECONDS = 1800.0  # For all pieces together
_CHUNK_BYTES = 1 << 16
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_SHOWN_CHARACTERS = 200
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_PLATFORM = ipaddress.ip_address("168.63.129.16")
"""A public address that within Azure is the machine's own host ("What is IP address 168.63.129.16?", Azure's pages)."""


class _Retry(urllib3.Retry):
    """Asks again what a server did not answer, and waits no longer than half a minute where it asks for a wait."""

    def __init__(self, total: int, **others: Any) -> None:
        failures = {429, *range(500, 600)}
        fixed = {"backoff_factor": 0.5, "status_forcelist": failures, "raise_on_status": False}
        super().__init__(total, **{**others, **fixed})

    def parse_retry_after(self, retry_after: str) -> float:
        """In seconds; raises InvalidHeader."""
        return min(super().parse_retry_after(retry_after), 30.0)


def shown(url: str) -> str:
    """The address for people: without its query, which may hold a signature."""
    return url.partition("?")[0][:_SHOWN_CHARACTERS]


def pieces(
    url: str,
    most_bytes: int,
    check: Callable[[], None],
    *,
    private: Collection[str] = (),
    tries: int = 3,
) -> Iterator[bytes]:
    """What is at an address, piece by piece; raises NetworkError, in one line, for everything that is not all of it.

    `check`: is asked between pieces whether to go on; `private`: names of hosts that may have addresses of a private
    network, or of this machine; `tries`: how often to ask in all; an answer that has begun and breaks off is an error
    at once.
    """
    deadline, got = time.monotonic() + WHOLE_SECONDS, 0
    try:
        response = _followed(url, frozenset(private), _Retry(tries - 1))
        try:
            if response.headers.get("Content-Encoding", "identity").lower() != "identity":
                raise _error(url, "is sent in a packed form that was not asked for")
            said = response.headers.get("Content-Length", "")
            if said.isdecimal() and int(said) > most_bytes:
                what = f"has {int(said):,} bytes, and {most_bytes:,} are allowed"
                raise _error(url, what, "raise max_size of the suite")
            for piece in response.stream(_CHUNK_BYTES, decode_content=False):
                check()
                got += len(piece)
                if got > most_bytes:
                    raise _error(url, f"has more than {most_bytes:,} bytes", "raise max_size of the suite")
                if time.monotonic() > deadline:
                    raise _error(url, f"takes longer than {WHOLE_SECONDS:,.0f} s")
                yield piece
        finally:
            response.close()
    except ProtocolError as error:
        raise _error(url, f"broke off before its end: {_words(error)}", "run it again") from None
    except (HTTPError, ProxySchemeUnknown, OSError) as error:
        raise _error(url, _words(error)) from None


def _error(url: str, what: str, hint: str = "") -> NetworkError:
    return NetworkError(what, where=shown(url), hint=hint)


def _words(error: Exception) -> str:
    """The innermost reason, without the object that it happened to."""
    reason = getattr(error, "reason", None)
    if isinstance(reason, Exception):
        return _words(reason)
    return str(error.args[0] if error.args else error).rpartition(">: ")[2][:_SHOWN_CHARACTERS]


def _followed(url: str, private: frozenset[str], retry: _Retry) -> urllib3.BaseHTTPResponse:
    """The answer that is no redirect."""
    at = url
    for _ in range(MOST_REDIRECTS + 1):
        parts = safe_address(at)
        if parts is None or parts.scheme != "https":
            before = "" if at == url else f"redirects to {shown(at)}, which "
            raise _error(url, f"{before}is no https address", "name a host, no user, and no other protocol")
        response: urllib3.BaseHTTPResponse = _pool(url, at, parts, private).urlopen(
            "GET",
            f"{parts.path or '/'}{'?' if parts.query else ''}{parts.query}",
            headers={"Host": parts.netloc, "User-Agent": "code-size-bot", "Accept-Encoding": "identity"},
            retries=retry,
            redirect=False,
            preload_content=False,
            timeout=urllib3.Timeout(TIMEOUT_SECONDS),
        )
        if response.status < 300:
            return response
        response.close()
        if response.status not in _REDIRECTS:
            raise _error(url, f"the server answers {response.status}")
        at = urljoin(at, response.headers.get("Location", ""))
    raise _error(url, f"redirects more than {MOST_REDIRECTS} times")


def safe_address(url: str) -> SplitResult | None:
    """The parts of an https address, or of an http one on this machine, that names no user; None for any other."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return None
    is_safe = parts.scheme == "https" or (parts.scheme == "http" and host in _LOOPBACK)
    return parts if is_safe and host and "@" not in parts.netloc and parts.netloc.isascii() else None


def _pool(url: str, at: str, parts: SplitResult, private: frozenset[str]) -> Any:
    """Connections to the host of an address: to one that was looked at, or to the proxy of this environment."""
    host, port = parts.hostname or "", parts.port or 443
    settings = requests.Session().merge_environment_settings(at, {}, True, None, None)
    proxy, trusted = select_proxy(at, settings["proxies"]), settings["verify"]
    authorities = trusted if isinstance(trusted, str) else DEFAULT_CA_BUNDLE_PATH
    tls: dict[str, Any] = {
        "cert_reqs": "CERT_REQUIRED",
        "ca_cert_dir" if Path(authorities).is_dir() else "ca_certs": authorities,
    }
    address = _address(url, host, port, private, resolves=not proxy)
    if proxy:  # as the environment names it: with or without `http://`, a user and a password
        address = proxy if "://" in proxy else f"http://{proxy}"
        user, password = get_auth_from_url(address)
        headers = urllib3.make_headers(proxy_basic_auth=f"{user}:{password}") if user else None
        return urllib3.ProxyManager(address, proxy_headers=headers, **tls).connection_from_host(host, port, "https")
    return urllib3.HTTPSConnectionPool(address, port, server_hostname=host, assert_hostname=host, **tls)


def _address(url: str, host: str, port: int, private: frozenset[str], *, resolves: bool) -> str:
    """Where to connect to: the first address of the host, if all of them are allowed."""
    flags = 0 if resolves else socket.AI_NUMERICHOST
    try:
        known = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)
    except (OSError, UnicodeError) as error:
        if not resolves:
            return host
        why = getattr(error, "strerror", None) or "no name of a host"
        raise _error(url, f"{host[:100]} is not known: {why}") from None
    addresses = [str(address[4][0]) for address in known]
    for address in addresses:
        if not is_allowed(address, is_private=host in private):
            what = f"{host[:100]} is {address}, which is" if host != address else f"{host} is"
            raise _error(url, f"{what} no public address", "set CODE_SIZE_PRIVATE_HOSTS to hosts of your own network")
    return addresses[0]


def is_allowed(address: str, *, is_private: bool = False) -> bool:
    """True for an address that a stranger may make this machine connect to.

    `is_private`: the owner of this machine allowed the host: a private network and this machine are right as well;
    addresses of a single link, such as 169.254.169.254, which tells cloud machines their secrets, never are.
    """
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):  # which may stand for one of IPv4
        translated = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF) if ip in _NAT64 else None
        ip = ip.ipv4_mapped or ip.sixtofour or translated or ip
    if ip.is_multicast or ip.is_unspecified or ip.is_link_local or ip == _PLATFORM:
        return False
    return ip.is_global or is_private


# The addresses of a compiler's memory: its output may depend on them, and Linux chooses them anew for every process.
#
# Compiles run without that randomness where the kernel allows it (a container's default seccomp profile does not), so
# that the same command gives the same artifact, run after run. Whether it would give another one elsewhere is then
# asked on purpose: a layout other than 0 moves all libraries, by the room that is left for the stack.


_ADDR_NO_RANDOMIZE = 0x0040000
"""personality(2): switches off the randomisation of addresses for programs that this thread starts."""
_ASK = 0xFFFFFFFF
# Above 128 MiB the kernel places libraries below the room for the stack (mmap_base in arch/x86/mm/mmap.c of Linux).
# An odd number of MiB: large libraries are aligned to 2 MiB, smaller steps move nothing.
_STACK_BYTES = (0, 257 << 20, 513 << 20, 4097 << 20, 769 << 20, 1281 << 20)
LAYOUTS = len(_STACK_BYTES)

_LAUNCHER = """
import os, resource, sys
try:
    resource.setrlimit(resource.RLIMIT_STACK, (int(sys.argv[1]), resource.getrlimit(resource.RLIMIT_STACK)[1]))
except (OSError, ValueError):
    pass
os.execv(sys.argv[2], sys.argv[2:])
"""


@contextlib.contextmanager
def fixed_addresses() -> Iterator[bool]:
    """What this thread starts inside has no random addresses; gives whether that is so."""
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None
    before = libc.personality(_ASK) if libc else -1
    if libc is None or before < 0 or libc.personality(before | _ADDR_NO_RANDOMIZE) < 0:
        yield False
        return
    try:
        yield bool(libc.personality(_ASK) & _ADDR_NO_RANDOMIZE)
    finally:
        libc.personality(before)


def placed(argv: Sequence[str], layout: int) -> list[str]:
    """The command that runs `argv` with its memory at the addresses of one of LAYOUTS layouts; 0 is the usual one."""
    room = _STACK_BYTES[layout % LAYOUTS]
    return [sys.executable, "-IS", "-c", _LAUNCHER, str(room), *argv] if room else list(argv)
