-- Offline devices: sends a message once for each device that has been offline for a long time.

--- @field after duration: how long a device may be offline
local after = 86400

---@type Automation
return {
  id = "offline_devices",
  name = "Offline devices",
  description = "Sends a message for each device that has been offline for a long time.",
  trigger = { type = "interval", every_secs = 900 },
  state = { resumable_schedule = true },
  mode = "single",
  execute = function(ctx)
    local since, now, found = ctx:get("offline_devices.since", {}), os.time(), {}
    for _, device in ipairs(ctx:list_devices()) do
      if device.attributes.state == "offline" or device.attributes.state == "unavailable" then
        found[device.id] = since[device.id] or now
        if found[device.id] > 0 and now - found[device.id] >= after then
          ctx:notify("Offline: " .. device.name, { title = "Device offline", device = device.id })
          found[device.id] = 0 -- sent
        end
      end
    end
    ctx:set("offline_devices.since", found)
  end,
}
