-- In the evening, what is in the group "evening" is switched on, at a third of its brightness where it can be dimmed.
--
-- This one does nothing until there is such a group. Once `locale.latitude` and `locale.longitude` are set, let the sun
-- say when the evening begins:
--
--     trigger = { type = "sunset", offset_mins = -15 },
--
-- `lares simulate --from 2026-12-24T00:00` tells when it would fire that day, and whether its condition would hold.

local GROUP = "evening"

return {
  id = "evening_light",
  name = "Evening light",
  description = "Switches the group evening on at 18:00, unless the TV is on.",
  trigger = { type = "wall_clock", hour = 18, minute = 0 },
  conditions = {
    { type = "device_state", device_id = "roku_tv:tv", attribute = "power", equals = "off" },
  },
  execute = function(ctx)
    if not ctx:get_group(GROUP) then
      return
    end
    for _, device in ipairs(ctx:list_group_devices(GROUP)) do
      ctx:command(device.id, { capability = "power", action = "on" })
      if device.attributes.brightness then
        ctx:command(device.id, { capability = "brightness", action = "set", value = 33 })
      end
    end
  end,
}
