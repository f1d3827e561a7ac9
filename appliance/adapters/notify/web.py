"""Sends a message as one request to a web service. Placeholders are replaced and escaped."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlsplit
from xml.sax.saxutils import escape

from appliance.adapters.answer_text import one_line
from appliance.adapters.base import AdapterContext
from appliance.adapters.device_http.access import HttpAccess
from appliance.adapters.device_http.client import HttpClient, HttpResponse
from appliance.adapters.device_http.errors import named_status
from appliance.adapters.notify.kind import NotifySection
from appliance.adapters.notify.sender import Button
from appliance.adapters.notify.services import PLACEHOLDER, PLACEHOLDERS, SERVICES
from appliance.adapters.redaction import Redaction
from appliance.errors import BadAnswer

MAX_REASON_BYTES = 4096

_REASONS = ("description", "errors", "errorDescription", "error", "message")
"""Fields of an error response that contain the reason, as in Telegram, Pushover, Gotify, ntfy, and other services."""

_FORM = re.compile(r"[\w.\[\]-]+=[^\s&=]*(?:&[\w.\[\]-]+=[^\s&=]*)+")
"""A template of a form, such as `m={message}&t={title}`."""

DEFAULT_TITLE = "Lares"

Texts = Mapping[str, str]
"""Message, title, token, and actions, by placeholder."""


class WebSender:
    """Sends a message as a request to a web service."""

    def __init__(
        self, settings: NotifySection, context: AdapterContext, token: str | None, password: str | None
    ) -> None:
        self._settings = settings
        self._service = None if settings.service is None else SERVICES[settings.service]
        self._token = token or ""
        url, self._headers, self._body = self._template()
        parts = urlsplit(url)
        self._path = url.removeprefix(f"{parts.scheme}://{parts.netloc}") or "/"
        stated = [self._path, self._body or "", *self._headers.values()]
        needs_bearer = token is not None and not any("{token}" in each for each in stated)
        access = HttpAccess(
            username=settings.username,
            password=password,
            token=token if needs_bearer else None,
            ca_file=None if settings.ca_file is None else context.root / settings.ca_file,
            fingerprint=settings.fingerprint,
        )
        self._http = HttpClient(context.open_session(), f"{parts.scheme}://{parts.netloc}", context.clock, access)

    async def send(self, message: str, title: str | None, buttons: Sequence[Button]) -> None:
        """Send the message once. Raise `Unreachable` on failure. If the service refuses, raise `BadAnswer` with
        the service's reason."""
        if self._service is not None:
            if self._service.joins_title and title:
                message = f"{title}\n{message}"
            encoding = "utf-8" if self._service.counts_bytes else "utf-32-le"
            message = shortened(message, self._service.max_chars, encoding)
        actions = [{"label": each.label, "url": each.url, "method": "POST", "token": each.key} for each in buttons]
        texts = {
            "message": message,
            "title": title or DEFAULT_TITLE,
            "token": self._token,
            "actions": json.dumps(actions),
        }
        data, headers = self._filled(texts)
        place = None if self._service is None else self._service.buttons
        if buttons and place == "header":
            headers["Actions"] = json.dumps([_ntfy_action(each) for each in buttons])
        if buttons and place == "keyboard":
            data = _with_keyboard(data, buttons)
        path = _fill(self._path, texts, lambda text: quote(text, safe=""))
        method = self._settings.method
        sent: dict[str, Any] = {} if method == "GET" and self._body is None else {"data": data}
        response = await self._http.exchange(method, path, headers=headers, **sent)
        if not 200 <= response.status < 300:
            reason = Redaction([path])(_reason_in(response))
            refusal = f"{self._http.address} answered {named_status(response.status)}"
            raise BadAnswer(f"{refusal}: {reason}" if reason else refusal)

    @property
    def shows_buttons(self) -> bool:
        """Whether the service or the configured request supports buttons."""
        if self._service is not None and self._service.buttons is not None:
            return True
        stated = [self._path, self._body or "", *self._headers.values()]
        return any("{actions}" in each for each in stated)

    def _template(self) -> tuple[str, dict[str, str], str | None]:
        """Return URL, headers, and body with their placeholders."""
        settings, service = self._settings, self._service
        if service is None:
            return settings.url or "", dict(settings.headers or {}), settings.body
        own = {name: getattr(settings, name) or "" for name in ("topic", "chat", "user")}
        path, body = service.path, service.body
        for name, text in own.items():
            path = path.replace(f"{{{name}}}", quote(text, safe=""))
            body = None if body is None else body.replace(f"{{{name}}}", json.dumps(text)[1:-1])
        return (settings.url or service.url).rstrip("/") + path, dict(service.headers), body

    def _filled(self, texts: Texts) -> tuple[bytes, dict[str, str]]:
        """Return the body and the headers of this message."""
        headers = {name: _fill(text, texts, _one_line) for name, text in self._headers.items()}
        stated = next((text for name, text in headers.items() if name.lower() == "content-type"), None)
        body = "{message}" if self._body is None else self._body
        kind, filled = _fill_body(body, texts, stated, is_plain=self._body is None)
        if stated is None:
            headers["Content-Type"] = kind
        return filled.encode(errors="replace"), headers


def _ntfy_action(button: Button) -> dict[str, Any]:
    authorization = {"Authorization": f"Bearer {button.key}"}
    return {
        "action": "http",
        "label": button.label,
        "url": button.url,
        "method": "POST",
        "headers": authorization,
        "clear": True,
    }


def _with_keyboard(body: bytes, buttons: Sequence[Button]) -> bytes:
    """Add the buttons to a message for Telegram. Pressing a button opens the address of the button's hook."""
    rows = [[{"text": each.label, "url": f"{each.url}?token={quote(each.key, safe='')}"}] for each in buttons]
    return json.dumps({**json.loads(body), "reply_markup": {"inline_keyboard": rows}}).encode()


def _reason_in(response: HttpResponse) -> str:
    """Return the reason that the service gives for a refusal: the text in its JSON error, or a short plain text."""
    text = response.body[:MAX_REASON_BYTES].decode(errors="replace")
    try:
        found = json.loads(text)
    except ValueError:
        return "" if "<" in text[:200] else one_line(text)
    stated = next((found[each] for each in _REASONS if found.get(each)), "") if isinstance(found, dict) else ""
    return one_line("; ".join(map(str, stated)) if isinstance(stated, list) else str(stated))


def shortened(text: str, max_units: int, encoding: str) -> str:
    """Return the text. If the text exceeds `max_units`, shorten it with an ellipsis. A unit is a byte of UTF-8, or
    a character in UTF-32."""
    encoded, dots = text.encode(encoding, "replace"), "…".encode(encoding)
    room = max_units * (1 if encoding == "utf-8" else len(dots))
    return text if len(encoded) <= room else encoded[: room - len(dots)].decode(encoding, "ignore") + "…"


def _fill_body(body: str, texts: Texts, stated: str | None, *, is_plain: bool) -> tuple[str, str]:
    """Return the content type, and the body with the texts escaped for this type."""
    kind = _kind_of(body) if stated is None and not is_plain else (stated or "").lower()
    if "json" in kind:
        return "application/json", _fill_json(body, texts)
    if "urlencoded" in kind:
        return kind, _fill(body, texts, lambda text: quote(text, safe=""))
    if "xml" in kind or "html" in kind:
        return kind, _fill(body, texts, lambda text: escape(text, {'"': "&quot;", "'": "&apos;"}))
    return "text/plain; charset=utf-8", _fill(body, texts, str)


def _kind_of(body: str) -> str:
    """Return the content type of a template that is JSON, XML, HTML, or a form. Otherwise, return an empty text."""
    if _is_json(body):
        return "application/json"
    start = body.lstrip().lower()
    if start.startswith(("<!doctype html", "<html")):
        return "text/html; charset=utf-8"
    if re.match(r"<[a-z?!]", start):
        return "application/xml; charset=utf-8"
    return "application/x-www-form-urlencoded" if _FORM.fullmatch(body.strip()) else ""


def _is_json(body: str) -> bool:
    """Return whether the filled body is a JSON object or array."""
    try:
        filled = _fill_json(body, {**dict.fromkeys(PLACEHOLDERS, ""), "actions": "[]"})
        return isinstance(json.loads(filled), dict | list)
    except ValueError:
        return False


def _fill_json(body: str, texts: Texts) -> str:
    """Fill in a JSON template. A placeholder inside a string becomes part of the string. A placeholder outside of
    a string becomes a string."""
    parts = re.split(r'("(?:[^"\\]|\\.)*")', body)
    return "".join(
        _fill(part, texts, lambda text: json.dumps(text)[1:-1])
        if number % 2
        else _fill(part, texts, json.dumps, raw="actions")
        for number, part in enumerate(parts)
    )


def _fill(template: str, texts: Texts, encode: Callable[[str], Any], raw: str = "") -> str:
    """Replace each placeholder with its encoded text. The placeholder `raw` is not encoded."""
    return PLACEHOLDER.sub(
        lambda found: texts[found[1]] if found[1] == raw else str(encode(texts[found[1]])), template
    )


def _one_line(text: str) -> str:
    """Replace control characters, including line breaks, with spaces, because the text is a header's value."""
    return re.sub(r"[\0-\x1f\x7f]+", " ", text).strip()


build = WebSender
