"""A certificate authority whose certificates for this machine expire after some seconds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tests.servers import debian, processes

DAY = 86_400
_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
_CONFIGURATION = """\
[ca]
default_ca = own
[own]
database = index.txt
new_certs_dir = .
rand_serial = yes
unique_subject = no
default_md = sha256
policy = any
x509_extensions = server
[any]
commonName = supplied
[server]
basicConstraints = CA:FALSE
subjectAltName = DNS:localhost, IP:127.0.0.1
"""


class Authority:
    """`certificate`: that of the authority; `issue` writes the one of the server, whose key stays the same."""

    def __init__(self) -> None:
        self._openssl = debian.OPENSSL.path()
        self.folder = processes.make_folder("authority")
        self.certificate, self.issued, self.key = (
            self.folder / name for name in ("authority.pem", "server.pem", "server.key")
        )
        for name, content in (("index.txt", ""), ("ca.conf", _CONFIGURATION)):
            (self.folder / name).write_text(content)
            processes.hand_over(self.folder / name)
        self._run(
            "req",
            "-x509",
            *_NEW_KEY,
            "-subj",
            "/CN=authority",
            "-addext",
            "keyUsage=critical,keyCertSign",
            "-keyout",
            "authority.key",
            "-out",
            "authority.pem",
        )
        self._run("req", "-new", *_NEW_KEY, "-subj", "/CN=server", "-keyout", "server.key", "-out", "server.csr")

    def issue(self, *, seconds: int) -> None:
        """Replace the certificate of the server by one that expires after so many seconds."""
        now = datetime.now(UTC)
        start, end = (_moment(now + timedelta(seconds=after)) for after in (-DAY, seconds))
        signed = ("-cert", "authority.pem", "-keyfile", "authority.key", "-in", "server.csr", "-out", "next.pem")
        self._run("ca", "-batch", "-notext", "-config", "ca.conf", "-startdate", start, "-enddate", end, *signed)
        (self.folder / "next.pem").rename(self.issued)

    def close(self) -> None:
        processes.remove_folder(self.folder)

    def _run(self, *arguments: str) -> None:
        processes.run([self._openssl, *arguments], folder=self.folder)


def _moment(at: datetime) -> str:
    return at.strftime("%Y%m%d%H%M%SZ")
