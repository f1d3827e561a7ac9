"""The home of the box after all steps of the page "First evening", and later changes to this home over HTTP."""

from __future__ import annotations

from tests.box.emulator import Emulator

CONFIG = "/etc/lares/config"
DEVICES = """
[adapters.virtual]

[[adapters.virtual.devices]]
id = "lamp"
kind = "Light"
attributes = { power = "off", brightness = 50 }

[[adapters.virtual.devices]]
id = "motion"
kind = "Sensor"
class = "motion"
attributes = { motion = "clear" }
"""
HALL_LIGHT = """
return {
  id = "hall_light",
  name = "Hall light",
  trigger = { type = "device_state_change", device_id = "virtual:motion", attribute = "motion", equals = "detected" },
  execute = function(ctx)
    ctx:command("virtual:lamp", { capability = "power", action = "on" })
    ctx:set("moved", (ctx:get("moved") or 0) + 1)
  end,
}
"""
NIGHT = """
return {
  id = "night",
  name = "Night",
  execute = function(ctx)
    ctx:command("virtual:lamp", { capability = "power", action = "off" })
  end,
}
"""
START_TIMER = """
return {
  id = "start_timer",
  name = "Starts a timer",
  trigger = { type = "webhook", hook = "start_timer" },
  execute = function(ctx, event)
    ctx:start_timer(event.name, event.secs, { number = event.number })
  end,
}
"""
TIMERS = tuple(f"timer_{number}" for number in range(6))
TIMER_OVER = f"""
return {{
  id = "timer_over",
  name = "Counts the timers that are over",
  triggers = {{ {", ".join(f'{{ type = "timer", name = "{name}" }}' for name in TIMERS)} }},
  mode = {{ type = "parallel", max = 32 }},
  execute = function(ctx, event)
    local name = "over." .. math.tointeger(event.payload.number)
    ctx:set(name, (ctx:get(name) or 0) + 1, {{ durable = true }})
  end,
}}
"""
JOBS = tuple(f"job_{number}" for number in range(3))
JOB = """
return {{
  id = "{name}",
  name = "{name}",
  trigger = {{ type = "variable_change", name = "unused.{name}" }},
  execute = function(ctx) ctx:log("info", "{name}") end,
}}
"""


def put_automations(box: Emulator) -> None:
    files = {"hall_light": HALL_LIGHT, "start_timer": START_TIMER, "timer_over": TIMER_OVER}
    files |= {name: JOB.format(name=name) for name in JOBS}
    for name, text in files.items():
        box.run(f"cat >{CONFIG}/automations/{name}.lua", text=text)
    box.run(f"cat >{CONFIG}/scenes/night.lua", text=NIGHT)
    assert box.demand("POST", "/automations/reload")["errors"] == []
    assert box.demand("POST", "/scenes/reload")["errors"] == []
