-- Away: switches all lights off when the home is empty. In the evening, one light after another is on.
--
-- The variable with the id of this automation is true while nobody is at home; other automations can use it.

local lights = require("lights")
local presence = require("presence")
local schedule = require("schedule")

--- @field people device presence: the devices that show who is at home
local people = { "mqtt:zigbee2mqtt_anna_phone" }
--- @field group group: the lights that are visible from outside
local group = "pretend"
--- @field from time: when the lights start
local from = "18:00"
--- @field to time: when they end
local to = "23:00"
--- @rule from ~= to: otherwise, the evening would have no duration

local STEP_MINS = 30

-- Switch on another light of the group than before; after the evening, switch all off.
local function pretend(ctx)
  local found = ctx:list_group_devices(group)
  lights.off(ctx, found)
  if #found > 0 and schedule.is_between(from, to) then
    local number = os.time() // (STEP_MINS * 60) % #found + 1
    lights.on(ctx, found[number].id, { brightness = 60 })
    ctx:start_timer("away.pretend", STEP_MINS * 60)
  else
    ctx:start_timer("away.pretend", schedule.secs_until(from))
  end
end

---@type Automation
return {
  id = "away",
  name = "Away",
  description = "Switches all lights off when the home is empty. In the evening, a light simulates presence.",
  triggers = {
    {
      id = "left",
      type = "device_state_change",
      device_id = people,
      attribute = "presence",
      equals = false,
      duration_secs = 600,
    },
    { id = "came", type = "device_state_change", device_id = people, attribute = "presence", equals = true },
    { id = "next", type = "timer", name = "away.pretend" },
  },
  mode = "queued",
  execute = function(ctx, event)
    local is_away = ctx:get("away", false)
    if event.trigger_id == "left" and not is_away and presence.nobody(ctx) then
      ctx:set("away", true, { durable = true })
      lights.off(ctx, lights.find(ctx))
      ctx:start_timer("away.pretend", schedule.is_between(from, to) and 60 or schedule.secs_until(from))
    elseif event.trigger_id == "came" and is_away then
      ctx:set("away", false, { durable = true })
      ctx:cancel_timer("away.pretend")
      lights.off(ctx, ctx:list_group_devices(group))
    elseif event.trigger_id == "next" and is_away then
      pretend(ctx)
    end
  end,
}
