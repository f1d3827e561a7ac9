-- A Fronius inverter over its Solar API: what the roof makes, the house uses, and the grid and battery give or take.
--
--   [adapters.roof]
--   type = "fronius"
--   base_url = "http://192.168.1.95"

local NO_API = "what answers at this address is no Fronius with its Solar API switched on"

-- The inverter sleeps when it is dark: it answers then, with nulls.
local function poll(ctx)
  local answer = ctx:fetch("/solar_api/v1/GetPowerFlowRealtimeData.fcgi", "Body", { [404] = NO_API })
  local site, battery = part(answer, "Body", "Data").Site, nil
  if type(site) ~= "table" then error(NO_API, 0) end
  local load = tonumber(site.P_Load)                                       -- what flows into the house is negative there
  local inverters = part(answer, "Body", "Data", "Inverters")
  for number in pairs(inverters) do
    local charge = round(part(inverters, number).SOC)                      -- the emptiest, where there are more than one
    if charge then battery = math.min(battery or charge, charge) end
  end
  return { { id = "site", kind = "Sensor", class = "inverter", name = "Solar power", info = { manufacturer = "Fronius" }, attributes = {
    power_consumption = measure(load and -load, "W"), battery = battery,
    ["custom.fronius.produced"] = measure(site.P_PV == nil and 0 or site.P_PV, "W"), ["custom.fronius.grid"] = measure(site.P_Grid, "W"),
    ["custom.fronius.battery_flow"] = measure(site.P_Akku, "W"), ["custom.fronius.autonomy"] = tonumber(site.rel_Autonomy),
    ["custom.fronius.energy_today"] = measure(site.E_Day, "kWh", "today", 1000), ["custom.fronius.energy_total"] = measure(site.E_Total, "kWh", "total", 1000),
  } } }
end

return {
  name = "Fronius",
  settings = { base_url = { type = "string", required = true, description = 'its address, like "http://192.168.1.95"' } },
  poll_interval_secs = 10,
  poll = poll,
}
