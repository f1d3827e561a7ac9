-- A Fronius inverter over its Solar API: what the roof makes, the house uses, and the grid and battery give or take.
--
--   [adapters.roof]
--   type = "fronius"
--   base_url = "http://192.168.1.95"

local function watts(value)
  return type(value) == "number" and { value = value, unit = "W" } or nil
end

local function energy(value, period)
  return type(value) == "number" and { value = value / 1000, unit = "kWh", period = period } or nil
end

-- The inverter sleeps when it is dark: it answers then, with nulls.
local function poll(ctx)
  local answer = ctx:http { path = "/solar_api/v1/GetPowerFlowRealtimeData.fcgi" }
  local body = type(answer.json) == "table" and answer.json.Body
  local data = type(body) == "table" and body.Data
  local site = type(data) == "table" and data.Site
  if answer.status ~= 200 or type(site) ~= "table" then
    error("what answers at this address is no Fronius with its Solar API switched on (status " .. answer.status .. ")", 0)
  end
  local load = type(site.P_Load) == "number" and -site.P_Load or nil       -- what flows into the house is negative there
  local battery                                                            -- the emptiest, where there are more than one
  for _, inverter in pairs(type(data.Inverters) == "table" and data.Inverters or {}) do
    local charge = type(inverter) == "table" and type(inverter.SOC) == "number" and math.floor(inverter.SOC + 0.5)
    if charge then battery = math.min(battery or charge, charge) end
  end
  return { { id = "site", kind = "Sensor", class = "inverter", name = "Solar power", info = { manufacturer = "Fronius" }, attributes = {
    power_consumption = watts(load), battery = battery,
    ["custom.fronius.produced"] = watts(site.P_PV == nil and 0 or site.P_PV), ["custom.fronius.grid"] = watts(site.P_Grid),
    ["custom.fronius.battery_flow"] = watts(site.P_Akku), ["custom.fronius.autonomy"] = type(site.rel_Autonomy) == "number" and site.rel_Autonomy or nil,
    ["custom.fronius.energy_today"] = energy(site.E_Day, "today"), ["custom.fronius.energy_total"] = energy(site.E_Total, "total"),
  } } }
end

return {
  name = "Fronius",
  settings = { base_url = { type = "string", required = true, description = 'its address, like "http://192.168.1.95"' } },
  poll_interval_secs = 10,
  poll = poll,
}
