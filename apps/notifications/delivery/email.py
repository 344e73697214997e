"""EMAIL: sends one mail over SMTP.

The response of the server determines the result:

    no connection, no login, 421, cut off        UnavailableError: the channel is deferred, no attempt is counted
    4xx for this mail or its recipient           RejectedError: the relay retries this mail by its retry policy
    5xx for this mail or its recipient           PermanentError: dead-lettered at once
    the server rejects our sender                RejectedError: an operator may correct it before the last attempt

The Message-ID is derived from the event id, so that the receiver can detect a mail that was sent twice.
"""

from __future__ import annotations

import smtplib
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from email.errors import MessageError
from email.headerregistry import Address
from email.message import EmailMessage
from urllib.parse import quote

from apps.notifications.delivery.log import Recipient
from apps.notifications.delivery.request import DeliveryRequest
from apps.notifications.delivery.settings import MailServer
from pillarbox import PermanentError, RejectedError, UnavailableError

CLOSING = 421
"""The server closes the connection."""
PERMANENT = 500


class Email:
    """Sends mails through one server, each over its own connection; thread-safe."""

    def __init__(self, server: MailServer, *, sender: Address) -> None:
        self._server = server
        self._sender = sender
        self._label = f"the mail server {server.host}:{server.port}"
        self._tls = None if server.security == "none" else ssl.create_default_context()

    def send(self, request: DeliveryRequest, to: Recipient) -> None:
        """Returns when the server has accepted the mail. Raises PermanentError, RejectedError, UnavailableError."""
        mail = self._compose(request, to)
        with self._session() as smtp:
            try:
                smtp.send_message(mail)
            except smtplib.SMTPNotSupportedError:
                raise PermanentError(f"{self._label} cannot carry the address of user {to.user_id}") from None
            except smtplib.SMTPRecipientsRefused as refused:
                [(code, reply)] = refused.recipients.values()
                raise self._rejection(f"the address of user {to.user_id}", code, reply) from None
            except smtplib.SMTPSenderRefused as refused:
                raise self._rejection("our sender", refused.smtp_code, refused.smtp_error, ours=True) from None
            except smtplib.SMTPResponseException as refused:
                raise self._rejection("the mail", refused.smtp_code, refused.smtp_error) from None

    def _compose(self, request: DeliveryRequest, to: Recipient) -> EmailMessage:
        if not to.email:
            raise PermanentError(f"user {to.user_id} has no mail address")
        mail = EmailMessage()
        try:
            mail["To"] = Address(display_name=to.name, addr_spec=to.email)
            mail["From"] = self._sender
            mail["Subject"] = " ".join(request.title.split())  # a line break would start another header
            mail["Message-ID"] = f"<{quote(request.delivery_id, safe='')}@{self._sender.domain}>"
            mail["Auto-Submitted"] = "auto-generated"
            mail.set_content(request.body)
        except (MessageError, ValueError, IndexError) as error:
            raise PermanentError(f"the mail to user {to.user_id} cannot be written: {error}") from None
        return mail

    @contextmanager
    def _session(self) -> Iterator[smtplib.SMTP]:
        try:
            smtp = self._connect()
        except (OSError, smtplib.SMTPException) as error:
            raise UnavailableError(f"{self._label} is unavailable: {_describe(error)}") from None
        try:
            yield smtp
        except (OSError, smtplib.SMTPServerDisconnected) as error:
            raise UnavailableError(f"{self._label} closed the connection: {_describe(error)}") from None
        else:
            with suppress(OSError, smtplib.SMTPException):  # the mail is delivered even if QUIT fails
                smtp.quit()
        finally:
            smtp.close()

    def _connect(self) -> smtplib.SMTP:
        server = self._server
        if server.security == "tls":
            smtp: smtplib.SMTP = smtplib.SMTP_SSL(server.host, server.port, timeout=server.timeout, context=self._tls)
        else:
            smtp = smtplib.SMTP(server.host, server.port, timeout=server.timeout)
        try:
            if server.security == "starttls":
                smtp.starttls(context=self._tls)
            if server.user is not None and server.password is not None:
                smtp.login(server.user, server.password)
        except BaseException:
            smtp.close()
            raise
        return smtp

    def _rejection(self, what: str, code: int, reply: bytes | str, *, ours: bool = False) -> Exception:
        text = reply.decode(errors="replace") if isinstance(reply, bytes) else reply
        error = f"{self._label} rejected {what}: {code} {' '.join(text.split())}"
        if code == CLOSING:
            return UnavailableError(error)
        return PermanentError(error) if code >= PERMANENT and not ours else RejectedError(error)


def _describe(error: Exception) -> str:
    """The error without the text of a login, which may contain credentials."""
    if isinstance(error, smtplib.SMTPAuthenticationError):
        return f"it rejected the login with {error.smtp_code}"
    return f"{type(error).__name__}: {error}"
