"""The bundled kinds, each with a simulator, a device, and its commands or values. All test files share this table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from appliance.adapters.kinds import LUA_KIND
from appliance.adapters.lua_kinds.section import LuaSection
from appliance.home.commands import Command
from tests.adapters.contract import POWER, ExpectedCommand, Subject
from tests.adapters.lua_kinds import simulators, sources
from tests.adapters.lua_kinds.bench import open_kinds, section
from tests.adapters.lua_kinds.vendor import Vendor


class Bundled(Struct, frozen=True, kw_only=True):
    """One kind with its vendor.

    `device` is empty for kinds without devices. `stated` contains the required settings. `commands` lists the
    commands of the device, and `taken` returns whether the vendor has switched the device on. `shown` contains an
    attribute of a read-only device, and the attribute's value.
    """

    kind: str
    vendor: Callable[[], Any]
    device: str = ""
    stated: Mapping[str, Any] = {}
    commands: Mapping[str, ExpectedCommand] = {}
    taken: Callable[[Any], bool] = bool
    shown: tuple[str, Any] = ("", None)

    def section(self, vendor: Vendor, name: str) -> LuaSection:
        return section(self.kind, {"base_url": vendor.url, "poll_interval_secs": 1, **self.stated}, name)

    def subject(self, **more: Any) -> Subject:
        """Convert the row for the contract suite."""
        return Subject(
            name="it",
            kind=LUA_KIND,
            device=self.device,
            simulate=self.vendor,
            settings=lambda vendor: self.section(vendor, "it"),
            open_kinds=open_kinds,
            commands=self.commands or POWER,
            **more,
        )


def _set(capability: str, on: Any, off: Any) -> Mapping[str, ExpectedCommand]:
    return {
        name: ExpectedCommand(Command(capability=capability, action="set", value=value), value)
        for name, value in (("on", on), ("off", off))
    }


def _play(action: str, shown: str) -> ExpectedCommand:
    return ExpectedCommand(Command(capability="media_playback", action=action), shown)


BUNDLED: Mapping[str, Bundled] = {
    "shelly_one": Bundled(
        kind="shelly",
        vendor=simulators.ShellyOne,
        device="switch:0",
        commands=POWER,
        taken=lambda vendor: vendor.status["relays"][0]["ison"],
    ),
    "shelly_two": Bundled(
        kind="shelly",
        vendor=simulators.ShellyTwo,
        device="switch:1",
        commands=POWER,
        taken=lambda vendor: vendor.status["switch:1"]["output"],
    ),
    "tasmota_http": Bundled(
        kind="tasmota_http",
        vendor=simulators.Tasmota,
        device="relay:1",
        commands=POWER,
        taken=lambda vendor: vendor.status["StatusSTS"]["POWER"] == "ON",
    ),
    "homewizard": Bundled(
        kind="homewizard",
        vendor=simulators.HomeWizardSocket,
        device="socket",
        commands=POWER,
        taken=lambda vendor: vendor.state["power_on"],
    ),
    "homewizard_meter": Bundled(
        kind="homewizard",
        vendor=sources.HomeWizardMeter,
        device="meter",
        shown=("power_consumption", {"value": -543, "unit": "W"}),
    ),
    "hue": Bundled(
        kind="hue",
        vendor=simulators.HueBridge,
        device="lamp1",
        commands=POWER,
        taken=lambda vendor: vendor.lamps["light1"]["on"]["on"],
    ),
    "daikin": Bundled(
        kind="daikin",
        vendor=simulators.Daikin,
        device="air",
        commands=_set("hvac_mode", "heat", "off"),
        taken=lambda vendor: vendor.control["pow"] == "1",
    ),
    "sonos": Bundled(
        kind="sonos",
        vendor=simulators.Sonos,
        device="player",
        commands={"on": _play("play", "playing"), "off": _play("pause", "paused")},
        taken=lambda vendor: vendor.shows["CurrentTransportState"] == "PLAYING",
    ),
    "fronius": Bundled(
        kind="fronius",
        vendor=sources.Fronius,
        device="site",
        shown=("power_consumption", {"value": 2320.4, "unit": "W"}),
    ),
    "open_meteo": Bundled(
        kind="open_meteo",
        vendor=sources.OpenMeteo,
        device="here",
        stated={"latitude": 52.5, "longitude": 13.4},
        shown=("weather_condition", "light rain"),
    ),
    "tibber": Bundled(
        kind="tibber",
        vendor=sources.Tibber,
        device="h1",
        shown=("custom.tibber.price", {"value": 0.2, "unit": "EUR/kWh"}),
    ),
    "awattar": Bundled(
        kind="awattar",
        vendor=sources.Awattar,
        device="now",
        shown=("custom.awattar.price", {"value": 8.05, "unit": "ct/kWh"}),
    ),
    "fritzbox": Bundled(
        kind="fritzbox",
        vendor=sources.FritzBox,
        device="ben",
        stated={"people": [f"Anna={sources.ANNA}", f"Ben={sources.BEN}"]},
        shown=("presence", False),
    ),
    "ollama": Bundled(kind="ollama", vendor=sources.Ollama),
}
