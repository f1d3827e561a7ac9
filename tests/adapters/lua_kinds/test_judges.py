"""Independent clients read and command the simulators, and agree with the kinds in Lua.

Two kinds are not tested: Daikin (`pydaikin` needs netifaces, which has no wheel), and Tasmota over HTTP (`hatasmota`
uses MQTT, see `tests/adapters/mqtt/test_tasmota_judge.py`).
"""

from __future__ import annotations

import asyncio
import hashlib
import ssl
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from appliance.adapters.lua_kinds.section import LuaSection
from appliance.errors import AdapterFailed
from appliance.health import AdapterStatus
from appliance.home.model import Device
from appliance.lua.running.worker_pool import WorkerPool
from tests.adapters.contract import trial
from tests.adapters.lua_kinds.bench import section, start
from tests.adapters.lua_kinds.bundled import BUNDLED
from tests.adapters.lua_kinds.simulators import HomeWizardSocket, HueBridge, ShellyOne, ShellyTwo, Sonos
from tests.adapters.lua_kinds.sources import (
    ANNA,
    BEN,
    Awattar,
    FritzBox,
    Fronius,
    HomeWizardMeter,
    Ollama,
    OpenMeteo,
    Tibber,
    upnp_error,
)
from tests.adapters.lua_kinds.vendor import Vendor
from tests.fakes.patience import until

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

TLS = Path(__file__).parents[2] / "fixtures" / "tls"


class PortConnector(aiohttp.TCPConnector):
    """For clients that connect to a fixed port of the vendor: redirects all requests, including TLS, to one port
    of this machine."""

    def __init__(self, port: int) -> None:
        super().__init__(ssl=False)
        self._simulated = port

    async def _resolve_host(self, host: str, port: int, traces: Any = None) -> Any:
        return await super()._resolve_host("127.0.0.1", self._simulated, traces)


async def shown(pool: WorkerPool, tmp_path: Path, kind: str, vendor: Vendor) -> dict[str, Device]:
    """Return the devices of the bundled kind."""
    stated = next(each.stated for each in BUNDLED.values() if each.kind == kind)
    return await (await start(pool, tmp_path, None, vendor, kind, **stated)).poll()


async def test_aioshelly_and_the_first_generation(pool: WorkerPool, tmp_path: Path) -> None:
    from aioshelly.block_device import COAP, BlockDevice
    from aioshelly.common import ConnectionOptions, get_info

    async with ShellyOne() as plug, aiohttp.ClientSession(connector=PortConnector(plug.port)) as session:
        assert (await get_info(session, "10.0.0.1"))["mac"] == plug.capture["shelly"]["mac"]
        client = BlockDevice(COAP(), session, ConnectionOptions("10.0.0.1"))
        await client.update_shelly()
        for is_on in (True, False):
            await client.http_request("get", "relay/0", {"turn": "on" if is_on else "off"})
            await client.update_status()
            found = (await shown(pool, tmp_path, "shelly", plug))["switch:0"].attributes
            reported: Any = client._status
            assert reported["relays"][0]["ison"] is is_on
            assert found["power"] == ("on" if is_on else "off")
        assert found["power_consumption"]["value"] == reported["meters"][0]["power"]


async def test_aioshelly_and_the_second_generation(pool: WorkerPool, tmp_path: Path) -> None:
    from aioshelly.common import ConnectionOptions
    from aioshelly.rpc_device import RpcDevice, WsServer

    async with ShellyTwo() as relays, aiohttp.ClientSession(connector=PortConnector(relays.port)) as session:
        client = await RpcDevice.create(session, WsServer(), ConnectionOptions("10.0.0.1"))
        try:
            assert client.model == "SPSW-003XE16EU" and client.initialized
            for is_on in (True, False):
                await client.call_rpc("Switch.Set", {"id": 1, "on": is_on})
                await client.update_status()
                found = await shown(pool, tmp_path, "shelly", relays)
                for key in ("switch:0", "switch:1", "switch:2"):
                    assert found[key].attributes["power"] == ("on" if client.status[key]["output"] else "off")
                assert client.status["switch:1"]["output"] is is_on
            await relays.press(0, "single_push")
            await until(lambda: client.event is not None)
            assert client.event is not None and client.event["events"][0]["event"] == "single_push"
            await relays.notify("NotifyStatus", {"switch:2": {"id": 2, "output": True}})
            await until(lambda: client.status["switch:2"]["output"])
        finally:
            await client.shutdown()


def server_context() -> ssl.SSLContext:
    """Return a TLS context with a self-signed certificate, like a bridge's."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(TLS / "cert.pem", TLS / "key.pem")
    return context


async def test_hue_is_known_by_its_certificate_and_knows_the_hub_by_its_key() -> None:
    digest = hashlib.sha256(ssl.PEM_cert_to_DER_cert((TLS / "cert.pem").read_text())).hexdigest()

    def settings(vendor: Vendor) -> LuaSection:
        stated = {"base_url": vendor.url, "fingerprint": digest, "headers": {"hue-application-key": "app-key"}}
        return section("hue", {**stated, "poll_interval_secs": 1}, "it")

    simulate = partial(HueBridge, key="app-key", tls=server_context())
    subject = replace(BUNDLED["hue"].subject(), simulate=simulate, settings=settings)
    async with trial(subject) as it:
        assert await it.succeeds("on") and it.vendor.lamps["light1"]["on"]["on"]
        await until(lambda: it.vendor.streams)
        it.vendor.key = "another"
        await until(lambda: it.status is AdapterStatus.DEGRADED)
        assert "does not know the key" in str(it.health.get_adapter("it").last_error)


async def test_aiohue(pool: WorkerPool, tmp_path: Path) -> None:
    from aiohue.v2 import HueBridgeV2

    async with HueBridge(tls=server_context()) as bridge, HueBridgeV2(f"127.0.0.1:{bridge.port}", "key") as client:
        await until(lambda: bridge.streams)
        assert {each.id for each in client.lights.items} == {"light1", "light2"}
        await client.lights.set_state("light1", on=True, brightness=70, color_temp=300)
        await until(lambda: client.lights["light1"].is_on and client.lights["light1"].brightness == 70)
        lamp = (await shown(pool, tmp_path, "hue", bridge))["lamp1"]
        device = client.lights.get_device("light1")
        assert device is not None and (device.metadata.name, device.product_data.model_id) == (
            lamp.name,
            lamp.info.model,
        )
        assert (lamp.attributes["power"], lamp.attributes["brightness"]) == ("on", 70)
        assert lamp.attributes["color_temperature"]["value"] == 3333
        await bridge.show(2, on={"on": True})
        await until(lambda: client.lights["light2"].is_on)
        await bridge.reach(2, "connectivity_issue")
        link = client.sensors.zigbee_connectivity
        await until(lambda: link["zigbee2"].status.value == "connectivity_issue")


async def test_python_homewizard_energy(pool: WorkerPool, tmp_path: Path) -> None:
    from homewizard_energy import HomeWizardEnergy

    async with HomeWizardSocket() as socket, HomeWizardEnergy(f"127.0.0.1:{socket.port}") as client:
        about = await client.device()
        for is_on in (True, False):
            await client.state_set(power_on=is_on)
            found = (await shown(pool, tmp_path, "homewizard", socket))["socket"]
            state, data = await client.state(), await client.data()
            assert state is not None and state.power_on is is_on
            assert found.attributes["power"] == ("on" if is_on else "off")
        assert (found.name, found.info.serial) == (about.product_name, about.serial)
        assert found.attributes["energy_total"]["value"] == data.total_energy_import_kwh
        assert found.attributes["voltage"]["value"] == data.active_voltage_v
    async with HomeWizardMeter() as meter, HomeWizardEnergy(f"127.0.0.1:{meter.port}") as client:
        data = await client.data()
        reported = (await shown(pool, tmp_path, "homewizard", meter))["meter"].attributes
        assert reported["power_consumption"]["value"] == data.active_power_w
        assert reported["custom.homewizard.gas"]["value"] == data.total_gas_m3
        assert data.external_devices is not None and len(data.external_devices) == 1


async def test_soco(pool: WorkerPool, tmp_path: Path) -> None:
    import soco

    def judge(port: int) -> tuple[Any, ...]:
        client = soco.SoCo("127.0.0.1", port)
        client.play()
        client.volume = 33
        client.mute = True
        state = client.get_current_transport_info()["current_transport_state"]
        return state, client.volume, client.mute, client.player_name, client.get_current_track_info()["title"]

    async with Sonos() as speaker:
        reported = await asyncio.to_thread(judge, speaker.port)
        assert reported == ("PLAYING", 33, True, "Kitchen", "Song")
        player = (await shown(pool, tmp_path, "sonos", speaker))["player"]
        found = [player.attributes[name] for name in ("media_playback", "volume", "muted", "media_title")]
        assert (player.name, found) == ("Kitchen", ["playing", 33, True, "Song"])


async def test_pyfronius(pool: WorkerPool, tmp_path: Path) -> None:
    from pyfronius import BadStatusError
    from pyfronius import Fronius as Client

    async with Fronius() as inverter, aiohttp.ClientSession() as session:
        reported = await Client(session, inverter.url).current_power_flow()
        found = (await shown(pool, tmp_path, "fronius", inverter))["site"].attributes
        assert found["custom.fronius.produced"] == {"value": reported["power_photovoltaics"]["value"], "unit": "W"}
        assert found["custom.fronius.grid"]["value"] == reported["power_grid"]["value"]
        assert found["power_consumption"]["value"] == -reported["power_load"]["value"]
        assert found["custom.fronius.energy_total"]["value"] == reported["energy_total"]["value"] / 1000
        head = {"Status": {"Code": 12, "Reason": "", "UserMessage": ""}, "Timestamp": "2019-01-10T23:33:12+01:00"}
        error = {"Head": {"RequestArguments": {}, **head}, "Body": {"Data": {}}}
        inverter.odd["/solar_api/v1/GetPowerFlowRealtimeData.fcgi"] = error
        with pytest.raises(BadStatusError, match="DeviceNotAvailable"):
            await Client(session, inverter.url).current_power_flow()
        with pytest.raises(AdapterFailed, match="status 12: device not available"):
            await shown(pool, tmp_path, "fronius", inverter)


async def test_fritzconnection(pool: WorkerPool, tmp_path: Path) -> None:
    from fritzconnection.core.exceptions import FritzSecurityError
    from fritzconnection.lib.fritzhosts import FritzHosts

    def judge(port: int) -> list[bool | None]:
        hosts = FritzHosts(address="127.0.0.1", port=port)
        return [hosts.get_host_status(address) for address in (ANNA, BEN)]

    async with FritzBox() as box:
        reported = await asyncio.to_thread(judge, box.port)
        found = await shown(pool, tmp_path, "fritzbox", box)
        assert [found[name].attributes["presence"] for name in ("anna", "ben")] == reported == [True, False]
        box.active.clear()
        assert await asyncio.to_thread(judge, box.port) == [None, None], "714 is an unknown host"
        box.odd["/upnp/control/hosts"] = (500, upnp_error(606, "Action Not Authorized"))
        with pytest.raises(FritzSecurityError):
            await asyncio.to_thread(judge, box.port)
        with pytest.raises(AdapterFailed, match="error 606: give the user the right"):
            await shown(pool, tmp_path, "fritzbox", box)


async def test_open_meteo(pool: WorkerPool, tmp_path: Path) -> None:
    from open_meteo import DailyParameters, HourlyParameters
    from open_meteo import OpenMeteo as Client

    names = ("TEMPERATURE_2M", "APPARENT_TEMPERATURE", "RELATIVE_HUMIDITY_2M", "CLOUD_COVER", "PRESSURE_MSL")
    expected = [HourlyParameters[name] for name in (*names, "WIND_SPEED_10M", "WIND_GUSTS_10M", "WIND_DIRECTION_10M")]
    shown_as = ("temperature_outdoor", "temperature_apparent", "humidity", "cloud_coverage", "pressure")
    async with (
        OpenMeteo(tls=server_context()) as sky,
        aiohttp.ClientSession(connector=PortConnector(sky.port)) as session,
    ):
        reported = await Client(session=session).forecast(
            latitude=52.5,
            longitude=13.4,
            current=expected,
            minutely_15=[HourlyParameters.PRECIPITATION],
            daily=[DailyParameters.TEMPERATURE_2M_MAX],
        )
        found = (await shown(pool, tmp_path, "open_meteo", sky))["here"].attributes
        current, soon, daily = (reported.to_dict()[name] for name in ("current", "minutely_15", "daily"))
        for name, attribute in zip(expected, (*shown_as, "wind_speed", "wind_gust", "wind_direction"), strict=True):
            value = found[attribute]
            assert (value["value"] if isinstance(value, dict) else value) == current[name.value], name
        assert found["temperature_high"]["value"] == daily["temperature_2m_max"][0]
        assert found["custom.open_meteo.rain_next_hour"]["value"] == pytest.approx(sum(soon["precipitation"][:4]))


async def test_pytibber(pool: WorkerPool, tmp_path: Path) -> None:
    from tibber import Tibber as Client

    async with (
        Tibber(tls=server_context()) as market,
        aiohttp.ClientSession(connector=PortConnector(market.port)) as session,
    ):
        client = Client("token", websession=session, user_agent="judge", time_zone=UTC)
        await client.update_info()
        [app] = client.get_homes()
        await app.update_info_and_price_info()
        found = await shown(pool, tmp_path, "tibber", market)
        assert set(found) == set(client.get_home_ids(only_active=False)) == {"h1", "h2"}
        prices = list(app.price_total.values())
        reported = found["h1"].attributes
        assert reported["custom.tibber.price"] == {"value": prices[2], "unit": app.price_unit}
        assert reported["custom.tibber.mean"]["value"] == pytest.approx(sum(prices) / len(prices))
        assert reported["custom.tibber.rank"] == sorted(prices).index(prices[2]) + 1


async def test_awattar(pool: WorkerPool, tmp_path: Path) -> None:
    from awattar.client import AsyncAwattarClient

    async with (
        Awattar(tls=server_context()) as market,
        aiohttp.ClientSession(connector=PortConnector(market.port)) as session,
    ):
        client = AsyncAwattarClient("DE", session)
        await client.request()
        now = datetime.now(UTC)
        present, following = (client.for_timestamp(now + timedelta(hours=hours)) for hours in (0, 1))
        found = (await shown(pool, tmp_path, "awattar", market))["now"].attributes
        assert present is not None and following is not None
        assert found["custom.awattar.price"]["value"] == pytest.approx(present.price_per_kWh * 100)
        assert found["custom.awattar.price_next"]["value"] == pytest.approx(following.price_per_kWh * 100)


async def test_ollama(pool: WorkerPool, tmp_path: Path) -> None:
    from ollama import AsyncClient

    async with Ollama() as model, AsyncClient(model.url) as client:
        it = await start(pool, tmp_path, None, model, "ollama")
        asked = {"model": "llama3.2", "messages": [{"role": "user", "content": "Rain?"}]}
        sentence = await client.chat(**asked)
        by_client = model.asked[-1].json
        reported = await it.adapter.operations["chat"](asked)
        by_kind = model.asked[-1].json
        assert by_kind.items() <= by_client.items(), "the same fields"
        assert sentence.message.content == reported["message"]["content"]
        generated = await client.generate("llama3.2", "Rain?")
        reported = await it.adapter.operations["generate"]({"prompt": "Rain?"})
        assert generated.response == reported["response"]
        listed = await client.list()
        reported = await it.adapter.operations["models"]({})
        assert [each.model for each in listed.models] == [each["model"] for each in reported["models"]]
