-- What is in the group "follows_light" is switched on and off with the light.
--
-- A file in this folder is an automation: it returns a table that says what it waits for and what it does then. This
-- one does nothing until there is such a group; put the TV into it with
--
--     curl -H "Authorization: Bearer $KEY" http://127.0.0.1:3000/groups \
--       -d '{"id": "follows_light", "name": "Follows the light", "members": ["roku_tv:tv"]}'
--
-- GET /automations/follow_the_light/history tells of each change what came of it.

local LIGHT = "elgato_lights:light:0"
local GROUP = "follows_light"

return {
  id = "follow_the_light",
  name = "Follow the light",
  description = "Switches the group follows_light with the light.",
  trigger = { type = "device_state_change", device_id = LIGHT, attribute = "power" },
  mode = "queued",
  execute = function(ctx, event)
    if ctx:get_group(GROUP) then
      ctx:command_group(GROUP, { capability = "power", action = event.value })
    end
  end,
}
