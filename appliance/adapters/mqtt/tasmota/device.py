"""A Tasmota device as its configuration message describes it: fields, options, names, and topics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import zip_longest
from typing import Any

from appliance.adapters.mqtt.announcements.announcement import DeviceFacts
from appliance.adapters.mqtt.fields import Texts
from appliance.adapters.mqtt.topic_filters import is_topic
from appliance.errors import Invalid

MAX_OUTPUTS = 32
"""Maximum number of relays, switches, buttons, and shutters of one device."""

DEFAULT_WORDS = ("OFF", "ON", "TOGGLE", "HOLD")


class TasmotaDevice:
    """The configuration message of one device. `words` are the device's words for off, on, toggle, and hold."""

    def __init__(self, mac: str, config: Mapping[str, Any]) -> None:
        topic, full, prefixes = config.get("t"), config.get("ft"), config.get("tp")
        if not (
            isinstance(topic, str) and isinstance(full, str) and isinstance(prefixes, list) and len(prefixes) == 3
        ):
            raise Invalid("the configuration lacks the field t, ft, or tp")
        self.mac = mac
        self._config = config
        tokens = {"%topic%": topic, "%hostname%": self.text("hn"), "%id%": mac[-6:]}
        for token, value in tokens.items():
            full = full.replace(token, value)
        self._full = full
        self._prefixes = [str(each) for each in prefixes]
        if not all(is_topic(prefixed("X")) for prefixed in (self.command, self.response, self.telemetry)):
            raise Invalid("the fields t, ft, and tp do not form a topic")
        self.words = [str(word or default) for word, default in zip_longest(self.entries("state")[:4], DEFAULT_WORDS)]
        self.facts = DeviceFacts(
            identifiers=(mac,),
            connections=(":".join(mac[at : at + 2] for at in range(0, 12, 2)).lower(),),
            name=self.text("dn"),
            manufacturer="Tasmota",
            model=self.text("md"),
            firmware=self.text("sw"),
        )

    def text(self, key: str) -> str:
        return str(self._config.get(key) or "")[:200]

    def entries(self, key: str) -> list[Any]:
        """Return a list. If the value is missing or not a list, return an empty list."""
        value = self._config.get(key)
        return value if isinstance(value, list) else []

    def numbers(self, key: str) -> list[int]:
        return [each if isinstance(each, int) else 0 for each in self.entries(key)[:MAX_OUTPUTS]]

    def number(self, key: str) -> int:
        value = self._config.get(key)
        return value if isinstance(value, int) else 0

    def option(self, number: int) -> int:
        options = self._config.get("so")
        value = options.get(str(number)) if isinstance(options, dict) else 0
        return value if isinstance(value, int) else 0

    def command(self, name: str) -> str:
        """Return the topic of a command, such as `cmnd/<topic>/POWER1`."""
        return self._topic(0, name)

    def response(self, name: str) -> str:
        """Return the topic of a response, such as `stat/<topic>/RESULT`."""
        return self._topic(1, name)

    def telemetry(self, name: str) -> str:
        """Return the topic of regular messages, such as `tele/<topic>/STATE`."""
        return self._topic(2, name)

    def _topic(self, prefix: int, name: str) -> str:
        """Return a topic as Tasmota forms it, which completes a FullTopic without a prefix or a final slash."""
        full = self._full if prefix or "%prefix%" in self._full else f"{self._full}/%prefix%"
        full = full.replace("%prefix%", self._prefixes[prefix]).replace("//", "/")
        return f"{full}{'' if full.endswith('/') else '/'}{name}"

    @property
    def sensor_topics(self) -> tuple[str, str]:
        return self.telemetry("SENSOR"), self.response("STATUS10")

    def responses(self, key: str, commands: Iterable[str], *more: str) -> dict[str, Any]:
        """Return the topics with the responses to these commands, and the topics in `more`.

        If SetOption4 is set, each response arrives at a topic named after its command.
        """
        answers = [self.response(each.upper()) for each in (commands if self.option(4) else ())]
        return {key: self.response("RESULT"), f"_{key}s": Texts((*answers, *more))}

    def name_of(self, at: int, key: str = "fn", default: str = "") -> str:
        """Return the name of an output or switch from the list under `key`. If the name is missing, return a
        default name with a number."""
        names = self.entries(key)
        name = names[at] if len(names) > at else None
        return str(name)[:200] if name else f"{default or self.facts.name} {at + 1}"

    def has_own_name(self, number: int) -> bool:
        """Return whether the switch has a name. The switch's messages then contain the name."""
        names = self.entries("swn")
        return len(names) >= number and bool(names[number - 1])
