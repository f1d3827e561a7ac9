-- Doorbell: sends a message when the bell rings, and flashes lights.

local lights = require("lights")

--- @field bell device: the doorbell
local bell = "mqtt:zigbee2mqtt_0x842e14fffe9b7c6d"
--- @field group group: the lights that flash
local group = "hall"

---@type Automation
return {
  id = "doorbell",
  name = "Doorbell",
  description = "Sends a message when the bell rings, and flashes lights.",
  trigger = { type = "device_event", device_id = bell },
  mode = "single",
  execute = function(ctx)
    ctx:notify("Somebody is at the door", { title = "Doorbell" })
    local ids = {}
    for _, light in ipairs(ctx:list_group_devices(group)) do
      ids[#ids + 1] = light.id
    end
    local before = ctx:snapshot(ids)
    for _ = 1, 3 do
      lights.toggle(ctx, ids, { brightness = 100 })
      ctx:sleep(0.5)
    end
    ctx:restore(before)
  end,
}
