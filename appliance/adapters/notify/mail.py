"""Sends a message by mail, over SMTP."""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence
from email.message import EmailMessage
from email.utils import format_datetime, make_msgid, parseaddr
from typing import Any

import aiosmtplib

from appliance.adapters.answer_text import one_line
from appliance.adapters.base import AdapterContext
from appliance.adapters.notify.kind import NotifySection
from appliance.adapters.notify.sender import Button, PartlySent
from appliance.adapters.tls import share_tls
from appliance.errors import BadAnswer, Unreachable
from appliance.shortening import join_first, shorten

MAX_MAIL_SUBJECT_CHARS = 78

MAX_NAMED = 3
"""Maximum number of rejected recipients that an error message names."""

HELLO = "lares.invalid"
"""Host name in the hub's greeting to a server. A lookup of the machine's real name would block the event loop."""


class MailSender:
    """Sends messages as mail."""

    shows_buttons = False

    def __init__(self, settings: NotifySection, context: AdapterContext, _: str | None, password: str | None) -> None:
        assert settings.smtp is not None
        self._settings = settings
        self._clock = context.clock
        self._password = password
        self._ca_file = None if settings.ca_file is None else context.root / settings.ca_file

    async def send(self, message: str, title: str | None, buttons: Sequence[Button]) -> None:
        """Send the message once. Raise `BadAnswer` if the server refuses, and otherwise `Unreachable` or `PartlySent`
        on failure."""
        settings, address = self._settings, self._settings.smtp
        assert address is not None
        tls = settings.tls or "starttls"
        where = f"the mail server {address.host}"
        try:
            refused, _ = await aiosmtplib.send(
                self._compose(message, title),
                hostname=address.host,
                port=address.port,
                username=settings.username,
                password=self._password,
                local_hostname=HELLO,
                use_tls=tls == "tls",
                start_tls=tls == "starttls",
                tls_context=None if tls == "none" else await share_tls(self._ca_file),
            )
        except aiosmtplib.SMTPResponseException as error:
            raise BadAnswer(f"{where} refused the message: {_answer(error.code, error.message)}") from None
        except aiosmtplib.SMTPRecipientsRefused as error:
            answers = {each.recipient: (each.code, each.message) for each in error.recipients}
            raise BadAnswer(f"{where} refused {_list_refused(answers)}") from None
        except (aiosmtplib.SMTPException, OSError, ValueError) as error:
            raise Unreachable(f"sending to {where} failed ({_reason(error)})") from None
        if refused:
            raise PartlySent(f"{where} rejected {_list_refused(refused)}; the other recipients received the message")

    def _compose(self, message: str, title: str | None) -> EmailMessage:
        settings = self._settings
        mail = EmailMessage()
        first = (title or message).strip().splitlines() or ["Lares"]
        subject = "".join(each if each.isprintable() else " " for each in first[0])
        mail["Subject"] = shorten(subject, MAX_MAIL_SUBJECT_CHARS)
        mail["From"] = settings.from_
        mail["To"] = ", ".join(settings.to or ())
        mail["Date"] = format_datetime(self._clock.now())
        mail["Message-ID"] = make_msgid(domain=parseaddr(settings.from_ or "")[1].rpartition("@")[2] or HELLO)
        mail.set_content(message.encode(errors="replace").decode())
        return mail


def _answer(code: int, message: str) -> str:
    return one_line(f"{code} {message}")


def _list_refused(refused: Mapping[str, tuple[int, str]]) -> str:
    """Format the rejected recipients, each with the server's response."""
    named = [f"{name}: {_answer(*answer)}" for name, answer in sorted(refused.items())]
    return join_first(named, MAX_NAMED, "; ")


def _reason(error: Any) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message}"
    if isinstance(error, aiosmtplib.SMTPTimeoutError | TimeoutError):
        return "timed out"
    return one_line(str(error)) or type(error).__name__


build = MailSender
