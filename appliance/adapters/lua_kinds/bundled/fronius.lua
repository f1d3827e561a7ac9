-- A Fronius inverter over its Solar API: power of the roof, the house, the grid, and the battery.
--
--   [adapters.roof]
--   type = "fronius"
--   base_url = "http://192.168.1.95"

local NOT_FRONIUS = "the device at this address is not a Fronius inverter whose Solar API is on"
local CODES = {           -- status codes of the Solar API
  [1] = "not implemented", [2] = "not initialised", [3] = "initialised, but not running", [4] = "running, without data", [5] = "timeout",
  [6] = "argument error", [7] = "request to the device failed", [8] = "request to the device timed out", [9] = "data of the device is invalid",
  [10] = "configuration cannot be read", [11] = "not supported", [12] = "device not available", [255] = "unknown error",
}

-- The inverter reports errors in Head.Status with HTTP status 200.
local function check(answer)
  local status = part(answer, "Head", "Status")
  local code = tonumber(status.Code) or 0
  if code ~= 0 then
    local reason = text(status.UserMessage, status.Reason, CODES[code]) or "no reason"
    error(("the inverter answers status %g: %s"):format(code, reason:sub(1, 200)), 0)
  end
end

-- At night, the inverter sleeps, and its answers contain nulls.
local function poll(ctx)
  local answer = ctx:fetch("/solar_api/v1/GetPowerFlowRealtimeData.fcgi", nil, { [404] = NOT_FRONIUS })
  check(answer)
  local site, battery = part(answer, "Body", "Data").Site, nil
  if type(site) ~= "table" then error(NOT_FRONIUS, 0) end
  local load = tonumber(site.P_Load)                                       -- negative if power flows into the house
  for _, inverter in parts(answer, "Body", "Data", "Inverters") do
    local charge = round(inverter.SOC)                                     -- the lowest charge of all batteries
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
