"""A real mail server in a separate process: `python -m tests.apps.notifications.delivery.mail_process FOLDER PORT`.

Tests control it by files in FOLDER:

    mails.jsonl     accepted mails, one per line, synced before the reply
    refusals.json   {"address": "550 no such user"}: the replies for rejected recipients; "*" for all
    kill            the pid of a client to kill after its next mail is synced and before the reply
    login           "user:password": required if the file exists at the start
    cert.pem        with key.pem: offers STARTTLS, and requires it for a login
"""

from __future__ import annotations

import json
import os
import signal
import ssl
import sys
from email import message_from_bytes, policy
from pathlib import Path
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

OK = "250 OK"


class MailHandler:
    """The handler of aiosmtpd."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def handle_RCPT(
        self, _server: SMTP, _session: Session, envelope: Envelope, address: str, _options: list[str]
    ) -> str:
        rules = self._folder / "refusals.json"
        refusals: dict[str, str] = json.loads(rules.read_text()) if rules.exists() else {}
        if refusal := refusals.get(address, refusals.get("*")):
            return refusal
        envelope.rcpt_tos.append(address)
        return OK

    async def handle_DATA(self, _server: SMTP, _session: Session, envelope: Envelope) -> str:
        mail = message_from_bytes(envelope.original_content or b"", policy=policy.default)
        body = mail.get_body(("plain",))
        line = {
            "id": mail["Message-ID"],
            "to": envelope.rcpt_tos,
            "from": envelope.mail_from,
            "subject": mail["Subject"],
            "body": "" if body is None else "\n".join(str(body.get_content()).splitlines()),
        }
        with (self._folder / "mails.jsonl").open("a") as mails:
            mails.write(json.dumps(line) + "\n")
            mails.flush()
            os.fsync(mails.fileno())
        victim = self._folder / "kill"
        if victim.exists():
            os.kill(int(victim.read_text()), signal.SIGKILL)
            victim.unlink()
        return OK


def serve(folder: Path, port: int) -> None:
    Controller(MailHandler(folder), hostname="127.0.0.1", port=port, **_security(folder)).start()
    (folder / "ready").touch()
    signal.pause()


def _security(folder: Path) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    if (folder / "cert.pem").exists():
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(folder / "cert.pem", folder / "key.pem")
        settings |= {"tls_context": tls, "require_starttls": True}
    if (folder / "login").exists():
        user, _, password = (folder / "login").read_text().partition(":")
        wanted = LoginPassword(user.encode(), password.encode())

        def check(*arguments: Any) -> AuthResult:
            return AuthResult(success=arguments[-1] == wanted, handled=False)

        settings |= {"authenticator": check, "auth_required": True, "auth_require_tls": "tls_context" in settings}
    return settings


if __name__ == "__main__":
    serve(Path(sys.argv[1]), int(sys.argv[2]))
