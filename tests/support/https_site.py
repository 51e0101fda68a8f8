"""A web site over real TLS on this machine, with a certificate of its own; each path answers as it was told."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_BORN = datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone.utc)
_ENDS = datetime.datetime(2120, 1, 1, tzinfo=datetime.timezone.utc)


@dataclass(frozen=True)
class Page:
    """An answer; `missing_bytes` of its body are promised and never sent."""

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    missing_bytes: int = 0
    tells_length: bool = True


@dataclass
class Site:
    """The site, by path; several pages of one path come one after the other, and the last one stays."""

    url: str
    certificate: Path
    pages: dict[str, list[Page]]
    asked: Counter[str]

    def put(self, path: str, *pages: Page) -> str:
        """Answer so from now on; returns the address."""
        self.pages[path] = list(pages)
        return self.url + path


def _write_certificate(folder: Path) -> tuple[Path, Path]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), _BORN, _ENDS)
    builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    certificate = builder.sign(key, hashes.SHA256())
    pem = serialization.Encoding.PEM
    plain = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "site.pem").write_bytes(certificate.public_bytes(pem))
    (folder / "site.key").write_bytes(plain)
    return folder / "site.pem", folder / "site.key"


def _handler(site: Site) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            site.asked[self.path] += 1
            pages = site.pages.get(self.path, [Page(b"there is nothing", 404)])
            page = pages.pop(0) if len(pages) > 1 else pages[0]
            self.send_response(page.status)
            for name, value in page.headers.items():
                self.send_header(name, value)
            if page.tells_length:
                self.send_header("Content-Length", str(len(page.body) + page.missing_bytes))
            self.end_headers()
            self.wfile.write(page.body)

        def log_message(self, *_: object) -> None:
            pass

    return Handler


@contextmanager
def serving(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """The site at `localhost`, trusted, and allowed although its address is this machine's."""
    certificate, key = _write_certificate(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    site = Site("", certificate, {}, Counter())
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(site))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    site.url = f"https://localhost:{server.server_address[1]}"
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate))
    monkeypatch.setenv("CODE_SIZE_PRIVATE_HOSTS", "localhost")
    monkeypatch.setenv("NO_PROXY", "localhost")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
