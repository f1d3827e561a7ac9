-- Sends a message when a door has been open for five minutes, and again every ten until somebody closes it.
--
-- Yours to change: DOORS, the ids of your doors' sensors; `[notify] targets`, where the message goes.
-- Then reload, and switch it on. It works when `lares why door_left_open` says `ran`; where nothing happens, that command says why.

local triggers = require("triggers")

local DOORS = {} -- such as { "mqtt:front_door" }
local AGAIN_SECS = 600

---@type Automation
return {
  id = "door_left_open",
  name = "Door left open",
  description = "Sends a message when a door is open for more than five minutes.",
  enabled = false, -- off until you switch it on, on the page or as docs/lua.md tells; fill in the names above first
  triggers = triggers.of(DOORS, {
    { type = "device_state_change", attribute = "contact", equals = "open", duration_secs = 300 },
    { type = "timer", name = "door_left_open" },
  }),
  mode = "queued",
  execute = function(ctx)
    local names = {}
    for _, id in ipairs(DOORS) do
      local door = ctx:get_device(id)
      if door and door.attributes.state == "online" and door.attributes.contact == "open" then
        names[#names + 1] = door.name
      end
    end
    if #names > 0 then
      ctx:notify("left open: " .. table.concat(names, ", "), { title = "Door" })
      ctx:start_timer("door_left_open", AGAIN_SECS)
    end
  end,
}
