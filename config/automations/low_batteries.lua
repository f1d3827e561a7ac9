-- Every night the log names the devices whose battery is low.
--
-- The expression is second, minute, hour, day, month, weekday, in UTC. `resumable_schedule` remembers over restarts what
-- has fired, so that no night is told of twice.

local LOW = 20

return {
  id = "low_batteries",
  name = "Low batteries",
  description = "Names the devices whose battery is below 20 % in the log, every night.",
  trigger = { type = "cron", expression = "0 30 1 * * *" },
  state = { resumable_schedule = true },
  execute = function(ctx)
    for _, device in ipairs(ctx:list_devices()) do
      local battery = device.attributes.battery
      if battery and battery < LOW then
        ctx:log("warn", "the battery is low", { device = device.id, percent = battery })
      end
    end
  end,
}
