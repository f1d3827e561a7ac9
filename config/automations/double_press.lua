-- A button that is pressed twice switches the lights of a group: off if one of them is on, else on.
--
-- Yours to change: BUTTONS, the ids of your buttons, and GROUP, the lights that they switch.
-- Then reload, and switch it on. It works when `lares why double_press` says `ran`; where nothing happens, that command says why.

local lights = require("lights")
local triggers = require("triggers")

local BUTTONS = {} -- such as { "mqtt:bed_button" }
local GROUP = "bedroom"

---@type Automation
return {
  id = "double_press",
  name = "Button pressed twice",
  description = "Pressing the button twice switches the lights of the group bedroom.",
  enabled = false, -- off until you switch it on, on the page or as docs/lua.md tells; fill in the names above first
  triggers = triggers.of(BUTTONS, { { type = "device_event", event = "double" } }),
  mode = "queued",
  execute = function(ctx)
    if ctx:get_group(GROUP) then
      lights.toggle(ctx, lights.find(ctx, GROUP), { brightness = 40 })
    end
  end,
}
