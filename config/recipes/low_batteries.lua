-- Low batteries: sends a message once for each device with a low battery.

--- @field time time: when the batteries are checked
local time = "18:30"
--- @field low number 1..50 %: the charge below which a battery is low
local low = 20

local CHARGED = 20 -- so much more than `low` ends the warning

---@type Automation
return {
  id = "low_batteries",
  name = "Low batteries",
  description = "Sends a message for each device with a low battery.",
  trigger = { type = "wall_clock", time = time },
  state = { resumable_schedule = true },
  execute = function(ctx)
    local told, has_changed = ctx:get("low_batteries.told", {}), false
    for _, device in ipairs(ctx:list_devices()) do
      local battery = device.attributes.battery
      if battery and battery < low and not told[device.id] then
        told[device.id], has_changed = true, true
        ctx:notify("The battery is low: " .. device.name, { device = device.id, percent = battery })
      elseif battery and battery >= low + CHARGED and told[device.id] then
        told[device.id], has_changed = nil, true
      end
    end
    if has_changed then
      ctx:set("low_batteries.told", told, { durable = true })
    end
  end,
}
