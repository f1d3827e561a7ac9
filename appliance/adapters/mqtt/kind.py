"""The kind `mqtt`, and the settings of a section."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec.structs import replace

from appliance.adapters.access_settings import file_path
from appliance.adapters.kind import AdapterKind, DiscoveryMethod, host_keys
from appliance.errors import Invalid
from appliance.home.model import DeviceKind
from appliance.tables import addresses
from appliance.tables.checks import boolean, matching, whole
from appliance.tables.fields import Settings, key

_prefix = matching(r"(?=.{1,200}\Z)[^+#$\0\s/]+(/[^+#\0\s/]+)*", 'the first part of topics like "homeassistant"')

_hub_id = matching(r"[a-z0-9-]{1,32}", '1 to 32 characters a-z, 0-9 and -, like "cellar"')


def _secret(value: Any) -> str:
    """Check a secret. The error message never contains the secret."""
    if not isinstance(value, str) or value == "":
        raise Invalid("must be a non-empty string")
    return value


class Mqtt(Settings, frozen=True, kw_only=True):
    """An enabled section. File paths are relative to the configuration's folder.

    Raises `Invalid` for contradicting keys.
    """

    host: str = key(addresses.host)
    port: int | None = key(whole(1, 65535), required=False)
    username: str | None = key(_secret, required=False)
    password: str | None = key(_secret, required=False, secret=True)
    password_file: str | None = key(file_path, required=False)
    tls: bool = key(boolean, default=False)
    ca_file: str | None = key(file_path, required=False)
    cert_file: str | None = key(file_path, required=False)
    key_file: str | None = key(file_path, required=False)
    discovery_prefix: str = key(_prefix, "homeassistant")
    tasmota: bool = key(boolean, default=True)
    publish: bool = key(boolean, default=False)
    hub_id: str | None = key(_hub_id, required=False)
    include_config_entities: bool = key(boolean, default=False)

    def located(self, root: Path) -> Mqtt:
        """Resolve the file paths from this folder."""
        paths = {name: getattr(self, name) for name in ("password_file", "ca_file", "cert_file", "key_file")}
        return replace(self, **{name: str(root / path) for name, path in paths.items() if path is not None})

    def __post_init__(self) -> None:
        if self.password is not None and self.password_file is not None:
            raise Invalid("has both password and password_file; keep one of them")
        if self.username is None and (self.password is not None or self.password_file is not None):
            raise Invalid("has a password but no username; add username")
        if (self.cert_file is None) != (self.key_file is None):
            raise Invalid("needs both cert_file and key_file")
        if not self.tls and (self.ca_file is not None or self.cert_file is not None):
            raise Invalid("has certificate files; set tls = true to use them")


MQTT = AdapterKind(
    name="mqtt",
    title="MQTT broker",
    discovery=(DiscoveryMethod(mdns="_mqtt._tcp", keys=host_keys("host", addresses.DEFAULT_PORTS["mqtt"])),),
    settings=Mqtt,
    device_kinds=frozenset({DeviceKind.LIGHT, DeviceKind.SWITCH, DeviceKind.SENSOR}),
    operations=frozenset({"publish", "notify"}),
)
