-- Door left open: sends a message when a door stays open, and repeats it until the door is closed.

--- @field doors device contact: the sensors of the doors
local doors = { "mqtt:zigbee2mqtt_0x00158d0003e5a1c7" }
--- @field after duration: how long a door may be open
local after = 300
--- @field again duration: how long until the next message
local again = 600

---@type Automation
return {
  id = "door_left_open",
  name = "Door left open",
  description = "Sends a message when a door stays open.",
  triggers = {
    { type = "device_state_change", device_id = doors, attribute = "contact", equals = "open", duration_secs = after },
    { type = "timer", name = "door_left_open" },
  },
  mode = "queued",
  execute = function(ctx)
    local names = {}
    for _, id in ipairs(doors) do
      local door = ctx:get_device(id)
      if door and door.attributes.state == "online" and door.attributes.contact == "open" then
        names[#names + 1] = door.name
      end
    end
    if #names > 0 then
      ctx:notify("Left open: " .. table.concat(names, ", "), { title = "Door" })
      ctx:start_timer("door_left_open", again)
    end
  end,
}
