-- Every evening, sends a message for each device whose battery has become low, once until it is charged.
--
-- `resumable_schedule` remembers over restarts what has fired, so that it never runs twice on one evening.
--
-- Yours to change: LOW and CHARGED, the time; `[notify] targets`, where the message goes.
-- Then reload, and switch it on. It works when `lares why low_batteries` says `ran`; where nothing happens, that command says why.

local LOW, CHARGED = 20, 40

---@type Automation
return {
  id = "low_batteries",
  name = "Low batteries",
  description = "Sends a message at 18:30 for each device whose battery is below 20 %.",
  enabled = false, -- off until you switch it on, on the page or as docs/lua.md tells
  trigger = { type = "wall_clock", time = "18:30" },
  state = { resumable_schedule = true },
  execute = function(ctx)
    local told, has_changed = ctx:get("low_batteries.told", {}), false
    for _, device in ipairs(ctx:list_devices()) do
      local battery = device.attributes.battery
      if battery and battery < LOW and not told[device.id] then
        told[device.id], has_changed = true, true
        ctx:notify("the battery is low: " .. device.name, { device = device.id, percent = battery })
      elseif battery and battery >= CHARGED and told[device.id] then
        told[device.id], has_changed = nil, true
      end
    end
    if has_changed then
      ctx:set("low_batteries.told", told, { durable = true })
    end
  end,
}
