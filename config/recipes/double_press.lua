-- Button: switches lights when you press a button.
--
-- If one of the lights is on, all go off; otherwise all go on.

local lights = require("lights")

--- @field buttons device: the buttons
local buttons = { "mqtt:zigbee2mqtt_0x84fd27fffe6d74b2" }
--- @field press choice single|double|triple|long: which press
local press = "double"
--- @field group group: the lights
local group = "bedroom"
--- @field brightness number 1..100 %: the brightness
local brightness = 40

---@type Automation
return {
  id = "double_press",
  name = "Button",
  description = "Switches the lights of a group when you press a button.",
  trigger = { type = "device_event", device_id = buttons, event = press },
  mode = "queued",
  execute = function(ctx)
    lights.toggle(ctx, ctx:list_group_devices(group), { brightness = brightness })
  end,
}
