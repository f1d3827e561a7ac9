-- Energy of the day: sends a message in the evening with the energy that devices used today.

--- @field meters device energy_today|energy_total: the meters
local meters = { "mqtt:tasmota_d8bfc0aa11ef" }
--- @field time time: when the message is sent
local time = "22:00"

---@type Automation
return {
  id = "daily_energy",
  name = "Energy of the day",
  description = "Sends a message in the evening with the energy that devices used today.",
  trigger = { type = "wall_clock", time = time },
  state = { resumable_schedule = true },
  execute = function(ctx)
    local totals, lines = ctx:get("daily_energy.totals", {}), {}
    for _, id in ipairs(meters) do
      local meter = ctx:get_device(id)
      local shown = meter and meter.attributes or {}
      local used, unit
      if shown.energy_today then
        used, unit = shown.energy_today.value, shown.energy_today.unit
      elseif shown.energy_total then
        used, unit = totals[id] and shown.energy_total.value - totals[id], shown.energy_total.unit
        totals[id] = shown.energy_total.value
      end
      if used then
        lines[#lines + 1] = ("%s: %.2f %s"):format(meter.name, used, unit)
      end
    end
    ctx:set("daily_energy.totals", totals, { durable = true })
    if #lines > 0 then
      ctx:notify(table.concat(lines, "\n"), { title = "Energy of the day" })
    end
  end,
}
