-- The weather at a location from Open-Meteo, without an account. The values change every 15 minutes.
--
--   [adapters.weather]
--   type = "open_meteo"
--   latitude = 52.52
--   longitude = 13.41

local CONDITIONS = {           -- the codes of the World Meteorological Organization
  [0] = "clear", [1] = "mainly clear", [2] = "partly cloudy", [3] = "overcast", [45] = "fog", [48] = "rime fog",
  [51] = "light drizzle", [53] = "drizzle", [55] = "heavy drizzle", [56] = "freezing drizzle", [57] = "freezing drizzle",
  [61] = "light rain", [63] = "rain", [65] = "heavy rain", [66] = "freezing rain", [67] = "freezing rain",
  [71] = "light snow", [73] = "snow", [75] = "heavy snow", [77] = "snow grains", [80] = "light showers", [81] = "showers",
  [82] = "violent showers", [85] = "snow showers", [86] = "heavy snow showers", [95] = "thunderstorm",
  [96] = "thunderstorm with hail", [99] = "thunderstorm with hail",
}

local CURRENT = "temperature_2m,apparent_temperature,relative_humidity_2m,precipitation,weather_code,cloud_cover,"
  .. "pressure_msl,wind_speed_10m,wind_direction_10m,wind_gusts_10m"

-- Return the rain of the next hour: the sum of the forecast's next four quarter-hours.
local function rain_soon(ctx, forecast)
  local amounts, sum, count = part(forecast, "precipitation"), 0, 0
  for number, from in ipairs(part(forecast, "time")) do
    local starts = tonumber(from) or 0
    if starts > ctx:now() - 900 and count < 4 and type(amounts[number]) == "number" then
      sum, count = sum + amounts[number], count + 1
    end
  end
  return measure(count > 0 and sum, "mm", "next hour")
end

local function poll(ctx)
  local answer = ctx:http { path = "/v1/forecast", query = {
    latitude = ctx.settings.latitude, longitude = ctx.settings.longitude, current = CURRENT, minutely_15 = "precipitation",
    forecast_minutely_15 = 8, daily = "temperature_2m_max,temperature_2m_min,uv_index_max", forecast_days = 1,
    timezone = "auto", timeformat = "unixtime", wind_speed_unit = "kmh",
  } }
  local found = answer.json
  if type(found) ~= "table" or type(found.current) ~= "table" then
    local reason = type(found) == "table" and type(found.reason) == "string" and found.reason:sub(1, 200)
    error("Open-Meteo answers without weather: " .. (reason or "status " .. answer.status), 0)
  end
  local now = found.current
  local function today(name) return part(found, "daily", name)[1] end
  local device = { id = "here", kind = "Sensor", class = "weather", name = ctx.settings.name, attributes = {
    temperature_outdoor = measure(now.temperature_2m, "°C"), temperature_apparent = measure(now.apparent_temperature, "°C"),
    temperature_high = measure(today("temperature_2m_max"), "°C"), temperature_low = measure(today("temperature_2m_min"), "°C"),
    humidity = measure(now.relative_humidity_2m, "%"), pressure = measure(now.pressure_msl, "hPa"),
    wind_speed = measure(now.wind_speed_10m, "km/h"), wind_gust = measure(now.wind_gusts_10m, "km/h"),
    wind_direction = round(now.wind_direction_10m), cloud_coverage = round(now.cloud_cover), uv_index = today("uv_index_max"),
    weather_condition = CONDITIONS[now.weather_code], rainfall = measure(now.precipitation, "mm", "15 minutes"),
    ["custom.open_meteo.rain_next_hour"] = rain_soon(ctx, part(found, "minutely_15")),
  } }
  return { device }
end

return {
  name = "Open-Meteo",
  base_url = "https://api.open-meteo.com",
  poll_interval_secs = 900,
  settings = {
    latitude = { type = "number", required = true, min = -90, max = 90, description = "degrees north of the equator" },
    longitude = { type = "number", required = true, min = -180, max = 180, description = "degrees east of Greenwich" },
    name = { type = "string", default = "Weather", description = "the name of the device" },
  },
  poll = poll,
}
