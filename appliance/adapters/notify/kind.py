"""The kind `notify`: settings and catalog entry."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from appliance.adapters.access_settings import EXCLUSIVE, file_path
from appliance.adapters.access_settings import fingerprint as certificate
from appliance.adapters.access_settings import headers as header_table
from appliance.adapters.access_settings import secret as secret_text
from appliance.adapters.kind import AdapterKind
from appliance.adapters.notify.services import PLACEHOLDER, PLACEHOLDERS, SERVICES
from appliance.errors import Invalid
from appliance.home.texts import hook_id
from appliance.tables import addresses
from appliance.tables.addresses import Address
from appliance.tables.checks import format_value, listed, matching, nearest, one_of, string, whole
from appliance.tables.fields import Settings, key

_word = matching(r"[!-~]+", "a word of visible ASCII characters")
_mailbox = matching(r"(?:[^<>\0-\x1f]* )?<?[^\s<>@]+@[^\s<>@]+>?", 'an address like "hub@example.org"')


def _url(value: Any) -> str:
    """Check an http or https URL. Path and query can contain placeholders. The error message contains no secret."""
    try:
        text = string(value)
        parts = urlsplit(text)
        addresses.base_url(f"{parts.scheme}://{parts.netloc}")
    except (Invalid, ValueError):
        raise Invalid('must be an address like "https://example.org/hook?text={message}"') from None
    if parts.fragment or not text.isprintable() or " " in text:
        raise Invalid("must not contain a fragment or spaces; placeholders are encoded automatically")
    return text


def _server(value: Any) -> Address:
    try:
        return addresses.address(value)
    except Invalid:
        raise Invalid(
            f'must be a server and its port like "smtp.example.org:587", not {format_value(value)}'
        ) from None


def _hook_keys(value: Any) -> Mapping[str, str]:
    """Check a table with the key of each hook. The error message contains no secret."""
    if not isinstance(value, Mapping) or not value:
        raise Invalid('must be a table like { feed = "lrs_…" }')
    for name, secret in value.items():
        try:
            hook_id.run(name)
            secret_text(secret)
        except Invalid as fault:
            raise Invalid(f"of the hook {format_value(name)} {fault}") from None
    return value


def _recipients(value: Any) -> tuple[str, ...]:
    found = listed(_mailbox)(value if isinstance(value, list) else [value])
    if not found:
        raise Invalid("must have at least one address")
    return found


class NotifySection(Settings, frozen=True, kw_only=True):
    """An enabled section, with one of the keys `url`, `service`, and `smtp`, and with the other keys that belong to
    this key.

    Raises `Invalid` for keys that cannot be combined.
    """

    url: str | None = key(_url, required=False, secret=True)
    method: str = key(one_of("POST", "PUT", "GET", "PATCH"), "POST")
    headers: Mapping[str, str] | None = key(header_table, required=False, secret=True)
    body: str | None = key(string, required=False, secret=True)
    service: str | None = key(one_of(*SERVICES), required=False)
    topic: str | None = key(_word, required=False, secret=True)
    chat: str | None = key(_word, required=False)
    user: str | None = key(_word, required=False, secret=True)
    token: str | None = key(secret_text, required=False, secret=True)
    token_file: str | None = key(file_path, required=False)
    username: str | None = key(secret_text, required=False)
    password: str | None = key(secret_text, required=False, secret=True)
    password_file: str | None = key(file_path, required=False)
    ca_file: str | None = key(file_path, required=False)
    fingerprint: str | None = key(certificate, required=False)
    smtp: Address | None = key(_server, required=False)
    tls: str | None = key(one_of("starttls", "tls", "none"), required=False)
    from_: str | None = key(_mailbox, required=False)
    to: tuple[str, ...] | None = key(_recipients, required=False)
    max_per_hour: int = key(whole(1, 3600), 60)
    hub_url: str | None = key(addresses.base_url, required=False)
    hook_keys: Mapping[str, str] | None = key(_hook_keys, required=False, secret=True)

    def __post_init__(self) -> None:
        if [self.url or self.service, self.smtp].count(None) != 1:
            raise Invalid("must have one of url, service, and smtp")
        for one, other in EXCLUSIVE:
            if getattr(self, one) is not None and getattr(self, other) is not None:
                raise Invalid(f"has both {one} and {other}; keep one of them")
        if (self.username is None) != (self.password is None and self.password_file is None):
            raise Invalid("has only one of username and password; set both, or neither")
        if (self.hub_url is None) != (self.hook_keys is None):
            raise Invalid("has only one of hub_url and hook_keys; set both, or neither")
        (self._check_mail if self.smtp is not None else self._check_web)()

    def _check_mail(self) -> None:
        web_keys = ("headers", "body", "topic", "chat", "user", "token", "token_file", "fingerprint", "hub_url")
        self._refuse("smtp", *web_keys)
        if self.from_ is None or self.to is None:
            raise Invalid("must have the settings from and to, because smtp is set")
        if self.tls == "none" and self.ca_file is not None:
            raise Invalid('has ca_file, which needs TLS; remove tls = "none"')

    def _check_web(self) -> None:
        self._refuse("url" if self.service is None else "service", "tls", "from_", "to")
        if self.service is None:
            self._refuse("url", "topic", "chat", "user")
            texts = [self.url or "", self.body or "", *(self.headers or {}).values()]
            if any("{token}" in each for each in texts) and self.token is None and self.token_file is None:
                raise Invalid("uses {token}, but has neither token nor token_file")
            for word in re.findall(r"\{(\w+)\}", " ".join(texts)):
                near = None if word in PLACEHOLDERS else nearest(word.lower(), PLACEHOLDERS, 0.75)
                if near is not None:
                    raise Invalid(f"contains the unknown placeholder {{{word}}}; did you mean {{{near}}}?")
            return
        self._refuse(f'service = "{self.service}"', "headers", "body")
        for each in SERVICES[self.service].needs:
            if getattr(self, each) is None and not (each == "token" and self.token_file is not None):
                required = "token or token_file" if each == "token" else each
                raise Invalid(f"must have {required} for the service {self.service}")
        if self.url is not None and PLACEHOLDER.search(self.url):
            raise Invalid(f"has placeholders in url; write only the address of your {self.service} server")

    def _refuse(self, other: str, *names: str) -> None:
        for name in names:
            if getattr(self, name) is not None:
                raise Invalid(f"has the setting {name.rstrip('_')}, which cannot be combined with {other}")


NOTIFY = AdapterKind(
    name="notify", title="Messages", settings=NotifySection, device_kinds=frozenset(), operations=frozenset({"send"})
)
