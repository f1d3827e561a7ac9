-- HomeWizard: the P1 meter, energy sockets, kWh and water meters, over version 1 of their local API. Switch on the API in
-- the app.
--
--   [adapters.meter]
--   type = "homewizard"
--   base_url = "http://192.168.1.90"
--
-- Plug-In Batteries need version 2. P1 and kWh meters can also use it:
--
--   base_url = "https://192.168.1.90"
--   fingerprint = "…"                                  # of the device's own certificate
--   token = "…"
--
-- For the token, press the button of the device, then Pair on the page (Box), or call POST /adapters/meter/operations/pair:
-- the answer contains the line to add.

-- Return the sum of the tariffs, for firmware without a total.
local function import_or_export(data, direction)
  local whole, sum = data["total_power_" .. direction .. "_kwh"], nil
  for tariff = 1, 4 do
    local part = data["total_power_" .. direction .. "_t" .. tariff .. "_kwh"]
    if type(part) == "number" then sum = (sum or 0) + part end
  end
  return measure(type(whole) == "number" and whole or sum, "kWh", "total")
end

-- Return the value of a gas, water, or heat meter that is connected to the P1 meter. The list still contains a replaced
-- meter with its last value, so the latest value is used.
local function from_other_meter(data, kind, unit)
  local found, latest
  for _, meter in ipairs(rows(data, "external")) do
    local at, value = tonumber((tostring(meter.timestamp):gsub("[^%d.]", ""))) or 0, meter.type == kind and measure(meter.value, unit, "total")
    if value and (not latest or at > latest) then found, latest = value, at end
  end
  return found
end

local ON = { [true] = "on", [false] = "off" }
local REASONS = {
  [401] = "the device does not know the token; pair it, and set token",
  [403] = "the local API is off; switch it on in the app, under the meter's settings",
}
local DATA_REASONS = { [403] = REASONS[403], [404] = "this HomeWizard has no version 1 of the local API; set a token, so that version 2 is used" }
local SECOND = { ["X-Api-Version"] = "2" }

-- Return a measurement of version 2 with the names of version 1.
local function read_second(ctx)
  local data = {}
  for name, value in pairs(ctx:fetch({ path = "/api/measurement", headers = SECOND }, nil, REASONS)) do
    local energy = tostring(name):match("^energy_(.+)")
    data[name], data[energy and "total_power_" .. energy or "active_" .. name] = value, value
  end
  return data
end

local function poll(ctx)
  local is_second = ctx.settings.token ~= nil
  ctx.memory.about = ctx.memory.about or ctx:fetch({ path = "/api", headers = is_second and SECOND or nil }, "product_type", REASONS)
  local about, data = ctx.memory.about, is_second and read_second(ctx) or ctx:fetch("/api/v1/data", nil, DATA_REASONS)
  local is_socket = about.product_type == "HWE-SKT" and not is_second
  local info = { manufacturer = "HomeWizard", model = text(about.product_type), firmware = text(about.firmware_version), serial = text(about.serial) }
  local device = { id = is_socket and "socket" or "meter", kind = "Sensor", class = "meter", name = text(about.product_name, about.product_type), info = info }
  device.attributes = {
    power_consumption = measure(data.active_power_w, "W"), voltage = measure(data.active_voltage_v or data.active_voltage_l1_v, "V"),
    current = measure(data.active_current_a or data.active_current_l1_a, "A"),
    energy_total = import_or_export(data, "import"), ["custom.homewizard.exported"] = import_or_export(data, "export"),
    ["custom.homewizard.gas"] = measure(data.total_gas_m3, "m³", "total") or from_other_meter(data, "gas_meter", "m³"),
    ["custom.homewizard.water"] = measure(data.total_liter_m3, "m³", "total") or from_other_meter(data, "water_meter", "m³"),
    ["custom.homewizard.heat"] = from_other_meter(data, "heat_meter", "GJ"),
    ["custom.homewizard.water_flow"] = measure(data.active_liter_lpm, "l/min"), ["custom.homewizard.tariff"] = math.tointeger(data.active_tariff),
    battery = round(data.state_of_charge_pct), ["custom.homewizard.cycles"] = data.cycles,
  }
  if not is_second and next(device.attributes) == nil and data.wifi_strength == nil then
    error("the answer of /api/v1/data has no measurement of a HomeWizard", 0)
  end
  if is_socket then
    local state = ctx:fetch("/api/v1/state", "power_on", REASONS)
    device.kind, device.class, device.attributes.power = "Switch", "plug", ON[state.power_on]
    device.commands = { "power" }
  end
  return { device }
end

local function command(ctx, device, asked)
  local answer = ctx:http { method = "PUT", path = "/api/v1/state", json = { power_on = asked.action == "on" } }
  if answer.status ~= 200 then return nil, "the socket refuses with status " .. answer.status .. "; check its switch lock in the app" end
end

local function pair(ctx)
  local answer = ctx:http { method = "POST", path = "/api/user", headers = SECOND, json = { name = "local/lares" } }
  local token = part(answer.json).token
  if type(token) ~= "string" then return nil, "press the button of the device, then repeat this within 30 seconds" end
  return 'token = "' .. token .. '"'
end

return {
  name = "HomeWizard",
  settings = { base_url = { type = "string", required = true, description = 'its address, like "http://192.168.1.90"' } },
  poll_interval_secs = 5,
  poll = poll,
  command = command,
  operations = { pair = { timeout_secs = 30, run = pair } },
}
