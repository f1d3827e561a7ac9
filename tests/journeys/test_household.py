"""Ten automations of a household run for three days with announced devices. The hub restarts during each wait."""

from __future__ import annotations

import asyncio
import json
import shutil
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tests.adapters.mqtt.broker import PASSWORD, USER, Broker
from tests.adapters.test_notify import MailServer, listening
from tests.fakes.household import OFF_SECS, Household, open_household
from tests.fakes.lua import write
from tests.fakes.recipes import filled

CONFIG = Path(__file__).parents[2] / "config"
BERLIN = ZoneInfo("Europe/Berlin")

TOML = f"""
[locale]
timezone = "Europe/Berlin"
latitude = 52.52
longitude = 13.4
[persistence]
flush_secs = 600
[notify]
targets = ["phone:send", "mail:send"]
[adapters.mqtt]
enabled = true
host = "127.0.0.1"
port = {{port}}
username = "{USER}"
password = "{PASSWORD}"
[adapters.phone]
type = "notify"
service = "ntfy"
url = "{{url}}"
topic = "home"
[adapters.mail]
type = "notify"
smtp = "127.0.0.1:{{smtp}}"
tls = "none"
from = "hub@home.example"
to = "ann@home.example"
"""

LAMPS = ("hall", "bed", "desk", "garden", "stairs", "porch")
AT_FIRST = {"motion": "OFF", "door": "OFF", "ann": "home", "bath": "50", "washer/power": "0", "radiator/target": "18"}
"""The attributes of devices before the first event. These values are needed, because a first value is not a
change."""

GROUPS = {"vacation": ["garden"], "night": ["garden", "stairs", "porch"], "pretend": ["porch"]}
NAMED: dict[str, dict[str, list[str]]] = {
    "door_left_open": {"doors": ["mqtt:door"]},
    "washing_machine": {"plugs": ["mqtt:washer"]},
    "away": {"people": ["mqtt:ann"]},
    "vacation_lights": {},
}
"""The recipes, and the devices in the fields of each recipe."""

OWN = {
    "sunset": """return { id = "sunset", name = "Sunset",
  trigger = { type = "sunset", weekdays = { "mon", "tue", "wed", "thu", "fri" } },
  conditions = { { type = "presence", device_id = "mqtt:ann" } },
  execute = function(ctx)
    ctx:command("mqtt:desk", { capability = "power", action = "on" })
  end }""",
    "hall_light": """local MOTION = "mqtt:motion"
return { id = "hall_light", name = "Hall",
  triggers = {
    { id = "moves", type = "device_state_change", device_id = MOTION, attribute = "motion", equals = "detected" },
    { id = "rests", type = "device_state_change", device_id = MOTION, attribute = "motion", equals = "clear" },
    { id = "over", type = "timer", name = "hall" },
  },
  mode = "queued",
  execute = function(ctx, event)
    local is_on = ctx:get_device("mqtt:hall").attributes.power == "on"
    if event.trigger_id == "moves" then
      ctx:cancel_timer("hall")
      if not is_on then
        ctx:set("hall.by_motion", true, { durable = true })
        ctx:command("mqtt:hall", { capability = "power", action = "on" })
      end
    elseif event.trigger_id == "rests" then
      ctx:start_timer("hall", 180)
    elseif ctx:get("hall.by_motion") then
      ctx:set("hall.by_motion", nil, { durable = true })
      ctx:command("mqtt:hall", { capability = "power", action = "off" })
    end
  end }""",
    "presses": """local BY = { single = "mqtt:desk", double = "mqtt:bed" }
return { id = "presses", name = "Presses",
  trigger = { type = "device_event", device_id = "mqtt:button" },
  mode = "queued",
  execute = function(ctx, event)
    if event.event == "long" then
      ctx:run_scene("all_but_three")
    else
      ctx:command(BY[event.event], { capability = "power", action = "toggle" })
    end
  end }""",
    "dawn": """return { id = "dawn", name = "Dawn",
  triggers = {
    { type = "wall_clock", time = "06:30", weekdays = { "mon", "tue", "wed", "thu", "fri" } },
    { id = "step", type = "timer", name = "dawn" },
  },
  execute = function(ctx, event)
    local step = event.payload and event.payload.step or 1
    ctx:command("mqtt:bed", { capability = "brightness", action = "set", value = step * 20 })
    if step < 5 then
      ctx:start_timer("dawn", 450, { step = step + 1 })
    end
  end }""",
    "bath": """return { id = "bath", name = "Bath",
  triggers = {
    { id = "on", type = "device_state_change", device_id = "mqtt:bath", attribute = "humidity", above = 70,
      duration_secs = 120 },
    { id = "off", type = "device_state_change", device_id = "mqtt:bath", attribute = "humidity", below = 60,
      duration_secs = 120 },
  },
  execute = function(ctx, event)
    ctx:command("mqtt:fan", { capability = "power", action = event.trigger_id })
  end }""",
    "heating": """local climate = require("climate")
return { id = "heating", name = "Heating",
  triggers = {
    { id = "wish", type = "variable_change", name = "heating" },
    { id = "over", type = "timer", name = "heating" },
  },
  mode = "queued",
  execute = function(ctx, event)
    if event.trigger_id == "over" then
      ctx:set("heating", "eco", { durable = true })
    else
      climate.set(ctx, "mqtt:radiator", event.value == "party" and 23 or 18)
      if event.value == "party" then
        ctx:start_timer("heating", 3600)
      end
    end
  end }""",
}

ALL_BUT_THREE = """local lights = require("lights")
return { id = "all_but_three", name = "All but three",
  execute = function(ctx)
    local stays = {}
    for _, id in ipairs(ctx:get_group("night").members) do stays[id] = true end
    for _, light in ipairs(lights.find(ctx)) do
      if not stays[light.id] then lights.off(ctx, light.id) end
    end
  end }"""

EVENTS = """
Thu 15:10 motion ON
Thu 15:11 motion OFF
Thu 15:12 restart 300
Thu 15:20 hall {"state": "ON"}
Thu 15:21 motion ON
Thu 15:22 motion OFF
Thu 15:23 kill
Thu 15:40 hall {"state": "OFF"}
Thu 16:00 door ON
Thu 16:02 restart
Thu 16:10 kill
Thu 16:20 kill 480
Thu 16:31 door OFF
Thu 16:40 bath 75
Thu 16:41 restart
Thu 16:50 bath 65
Thu 16:55 bath 55
Thu 16:56 restart
Thu 17:00 washer/power 2000
Thu 17:10 kill
Thu 17:30 washer/power 2
Thu 17:31 restart
Thu 17:34 kill
Thu 17:45 restart
Thu 18:00 variable vacation true
Thu 18:33 kill
Thu 19:00 variable heating "party"
Thu 19:30 kill
Thu 22:35 restart
Thu 23:00 stairs {"state": "ON"}
Thu 23:00 porch {"state": "ON"}
Thu 23:00 button single
Thu 23:01 restart
Thu 23:02 button single
Thu 23:02 button double
Thu 23:03 restart
Thu 23:04 button long
Fri 06:33 restart
Fri 06:42 kill
Fri 12:00 variable vacation false
Fri 16:00 ann not_home
Fri 16:05 restart
Fri 17:00 kill
Fri 18:15 restart
Fri 18:40 ann home
Sat 18:20 ann home
"""
"""The events in the home's time: values of devices, changes by people, and stops of the hub with their durations
in seconds."""

EXPECTED = """
Thu 15:10 hall {"state":"ON"}
Thu 15:17 hall {"state":"OFF"}
Thu 16:05 notified Left open: Door
Thu 16:15 notified Left open: Door
Thu 16:25 notified Left open: Door
Thu 16:42 fan ON
Thu 16:57 fan OFF
Thu 17:33 notified The washing machine is done
Thu 18:03 desk {"state":"ON"}
Thu 18:44 garden {"state":"ON","brightness":70}
Thu 19:00 radiator target 23
Thu 20:00 radiator target 18
Thu 22:44 garden {"state":"OFF"}
Thu 23:00 desk {"state":"OFF"}
Thu 23:02 desk {"state":"ON"}
Thu 23:02 bed {"state":"ON"}
Thu 23:04 bed {"state":"OFF"}
Thu 23:04 desk {"state":"OFF"}
Fri 06:30 bed {"state":"ON","brightness":20}
Fri 06:37 bed {"state":"ON","brightness":40}
Fri 06:45 bed {"state":"ON","brightness":60}
Fri 06:52 bed {"state":"ON","brightness":80}
Fri 07:00 bed {"state":"ON","brightness":100}
Fri 16:10 bed {"state":"OFF"}
Fri 16:10 porch {"state":"OFF"}
Fri 16:10 stairs {"state":"OFF"}
Fri 18:00 porch {"state":"ON","brightness":60}
Fri 18:30 porch {"state":"OFF"}
Fri 18:30 porch {"state":"ON","brightness":60}
Fri 18:40 porch {"state":"OFF"}
"""
"""All expected commands and messages."""


def announcements() -> dict[str, dict[str, Any]]:
    """Return the announcements of the devices by discovery topic."""

    def lamp(name: str) -> dict[str, Any]:
        return {"schema": "json", "brightness": True, "brightness_scale": 100, "command_topic": f"home/{name}/set"}

    def press(payload: str, called: str) -> dict[str, Any]:
        about = {"automation_type": "trigger", "type": "action", "subtype": called, "payload": payload}
        return about | {"topic": "home/button"}

    entities: dict[str, dict[str, Any]] = {
        **{f"light/{name}": lamp(name) for name in LAMPS},
        "binary_sensor/motion": {"device_class": "motion"},
        "binary_sensor/door": {"device_class": "door"},
        "device_tracker/ann": {},
        "sensor/bath": {"device_class": "humidity", "unit_of_measurement": "%"},
        "sensor/marker": {"device_class": "temperature", "unit_of_measurement": "°C"},
        "switch/fan": {"command_topic": "home/fan/set"},
        "switch/washer": {"command_topic": "home/washer/set"},
        "sensor/washer/power": {
            "device_class": "power",
            "unit_of_measurement": "W",
            "state_topic": "home/washer/power",
        },
        "climate/radiator": {
            "modes": ["off", "heat"],
            "temperature_command_topic": "home/radiator/set/target",
            "temperature_state_topic": "home/radiator/target",
        },
        "device_automation/button/single": press("single", "single"),
        "device_automation/button/double": press("double", "double"),
        "device_automation/button/long": press("long", "long_press"),
    }
    found = {}
    for topic, entity in entities.items():
        name = topic.split("/")[1]
        about = {"unique_id": topic.replace("/", "_"), "name": None, "state_topic": f"home/{name}"}
        found[topic] = about | {"device": {"identifiers": [name], "name": name.title()}} | entity
    return found


def furnish(root: Path) -> None:
    """Write the bundled modules, the filled-in automations, and additional ones."""
    shutil.copytree(CONFIG / "scripts", root / "config/scripts")
    for name, named in NAMED.items():
        write(root, {f"automations/{name}.lua": filled(name, **named)})
    write(root, {f"automations/{name}.lua": text for name, text in OWN.items()})
    write(root, {"scenes/all_but_three.lua": ALL_BUT_THREE})


def instant(day: str, time: str) -> datetime:
    hour, minute = map(int, time.split(":"))
    return datetime(2027, 3, 11 + ("Thu", "Fri", "Sat").index(day), hour, minute, tzinfo=BERLIN)


async def play(home: Household, what: str, *words: str) -> None:
    if what in {"restart", "kill"}:
        await home.restart(is_killed=what == "kill", off_secs=float(words[0]) if words else OFF_SECS)
    elif what == "variable":
        answer = await home.app.ask("PUT", f"/variables/{words[0]}", json={"value": json.loads(words[1])})
        assert answer.status == 200, answer.json
    else:
        home.show(what, " ".join(words))
    await home.settle()


@pytest.mark.slow
async def test_the_ten_automations_of_a_household_survive_restarts_and_kills(broker: Broker, tmp_path: Path) -> None:
    furnish(tmp_path)
    mails, posts = MailServer(None, {}), list[Any]()
    mail = await asyncio.start_server(mails.serve, "127.0.0.1", 0)
    async with mail, listening([], posts) as url:
        toml = TOML.format(port=broker.port, url=url, smtp=mail.sockets[0].getsockname()[1])
        async with open_household(tmp_path, toml, instant("Thu", "15:00"), broker, announcements()) as home:
            for id_, members in GROUPS.items():
                body = {"id": id_, "name": id_, "members": [f"mqtt:{name}" for name in members]}
                assert (await home.app.post("/groups", body)).status == 200
            for name, payload in {**dict.fromkeys(LAMPS, '{"state": "OFF"}'), **AT_FIRST}.items():
                home.show(name, payload)
            await home.settle()
            for line in EVENTS.split("\n")[1:-1]:
                day, time, *words = line.split(" ")
                await home.go_on_until(instant(day, time))
                await play(home, *words)
            reported = [line.split(" notified ")[1] for line in EXPECTED.splitlines() if " notified " in line]
            assert home.lines == [line for line in EXPECTED.split("\n")[1:-1] if " notified " not in line]
            assert [body for _, _, _, body in posts] == reported
            assert [mail.split("\r\n\r\n")[1].removesuffix("\r\n.\r\n") for mail in mails.mails] == reported
