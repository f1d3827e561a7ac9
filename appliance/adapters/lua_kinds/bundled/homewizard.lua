-- HomeWizard: the P1 meter, energy sockets, kWh and water meters, over their local API. Switch on the API in the app.
--
--   [adapters.meter]
--   type = "homewizard"
--   base_url = "http://192.168.1.90"

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
    local at, value = tonumber(meter.timestamp) or 0, meter.type == kind and measure(meter.value, unit, "total")
    if value and (not latest or at > latest) then found, latest = value, at end
  end
  return found
end

local ON = { [true] = "on", [false] = "off" }
local REASONS = { [403] = "the local API is off; switch it on in the app, under the meter's settings" }
local DATA_REASONS = { [403] = REASONS[403], [404] = "this HomeWizard has no version 1 of the local API, which this kind reads" }

local function poll(ctx)
  ctx.memory.about = ctx.memory.about or ctx:fetch("/api", "product_type", REASONS)
  local about, data = ctx.memory.about, ctx:fetch("/api/v1/data", nil, DATA_REASONS)
  local is_socket = about.product_type == "HWE-SKT"
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
  }
  if next(device.attributes) == nil and data.wifi_strength == nil then
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

return {
  name = "HomeWizard",
  settings = { base_url = { type = "string", required = true, description = 'its address, like "http://192.168.1.90"' } },
  poll_interval_secs = 5,
  poll = poll,
  command = command,
}
