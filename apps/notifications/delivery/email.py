"""EMAIL: one mail over SMTP, in one conversation.

Who is at fault decides what becomes of it:

    no connection, no login, 421, cut off        the server: UnavailableError, every mail waits, none is charged
    4xx for this mail or its recipient           RejectedError: this mail is tried again by the retry policy
    5xx for this mail or its recipient           PermanentError: a dead letter at once
    the server does not take our sender          RejectedError: it may be mended before the attempts are used up

The Message-ID is made of the event's id: a mail that went out twice is recognised as one by those who look.
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
"""The server hangs up, whatever was asked of it."""
FOR_GOOD = 500


class Email:
    """Sends mails through one server, each over a connection of its own: any number of threads may call it."""

    def __init__(self, server: MailServer, *, sender: Address) -> None:
        self._server = server
        self._sender = sender
        self._place = f"the mail server {server.host}:{server.port}"
        self._tls = None if server.security == "none" else ssl.create_default_context()

    def send(self, request: DeliveryRequest, to: Recipient) -> None:
        """Returns once the server has taken responsibility. Raises PermanentError, RejectedError, UnavailableError."""
        mail = self._written(request, to)
        with self._conversation() as smtp:
            try:
                smtp.send_message(mail)
            except smtplib.SMTPNotSupportedError:
                raise PermanentError(f"{self._place} cannot carry the address of user {to.user_id}") from None
            except smtplib.SMTPRecipientsRefused as refused:
                [(code, said)] = refused.recipients.values()
                raise self._refusal(f"the address of user {to.user_id}", code, said) from None
            except smtplib.SMTPSenderRefused as refused:
                raise self._refusal("our sender", refused.smtp_code, refused.smtp_error, ours=True) from None
            except smtplib.SMTPResponseException as refused:
                raise self._refusal("the mail", refused.smtp_code, refused.smtp_error) from None

    def _written(self, request: DeliveryRequest, to: Recipient) -> EmailMessage:
        if not to.email:
            raise PermanentError(f"user {to.user_id} has no mail address")
        mail = EmailMessage()
        try:
            mail["To"] = Address(display_name=to.name, addr_spec=to.email)
            mail["From"] = self._sender
            mail["Subject"] = " ".join(request.title.split())  # a line break would begin another header
            mail["Message-ID"] = f"<{quote(request.delivery_id, safe='')}@{self._sender.domain}>"
            mail["Auto-Submitted"] = "auto-generated"
            mail.set_content(request.body)
        except (MessageError, ValueError, IndexError) as error:
            raise PermanentError(f"the mail to user {to.user_id} cannot be written: {error}") from None
        return mail

    @contextmanager
    def _conversation(self) -> Iterator[smtplib.SMTP]:
        try:
            smtp = self._connected()
        except (OSError, smtplib.SMTPException) as error:
            raise UnavailableError(f"{self._place} takes no mail: {_told(error)}") from None
        try:
            yield smtp
        except (OSError, smtplib.SMTPServerDisconnected) as error:
            raise UnavailableError(f"{self._place} broke off: {_told(error)}") from None
        else:
            with suppress(OSError, smtplib.SMTPException):  # the mail is delivered, however the farewell goes
                smtp.quit()
        finally:
            smtp.close()

    def _connected(self) -> smtplib.SMTP:
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

    def _refusal(self, what: str, code: int, said: bytes | str, *, ours: bool = False) -> Exception:
        text = said.decode(errors="replace") if isinstance(said, bytes) else said
        error = f"{self._place} refused {what}: {code} {' '.join(text.split())}"
        if code == CLOSING:
            return UnavailableError(error)
        return PermanentError(error) if code >= FOR_GOOD and not ours else RejectedError(error)


def _told(error: Exception) -> str:
    """What went wrong, without what was said in a login."""
    if isinstance(error, smtplib.SMTPAuthenticationError):
        return f"it refused the login with {error.smtp_code}"
    return f"{type(error).__name__}: {error}"
