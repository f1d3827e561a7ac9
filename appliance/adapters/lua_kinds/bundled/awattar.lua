-- The hourly price of electricity from aWATTar, for today and, in the afternoon, also for tomorrow.
--
--   [adapters.price]
--   type = "awattar"
--   country = "de"

local HOUR = 3600

-- Return the rank of this hour within its day. Rank 1 is the cheapest hour.
local function rank_of(now, hours)
  local rank = 1
  for _, hour in ipairs(hours) do
    if hour.price < now.price or hour.price == now.price and hour.from < now.from then rank = rank + 1 end
  end
  return rank
end

-- Return a time from a row, converted from milliseconds to seconds.
local function seconds(row, name)
  local value = row[name]
  return type(value) == "number" and value > 0 and value < 1e14 and math.tointeger(value // 1000) or nil
end

-- Return the hours of the answer. Prices are in cents per kilowatt-hour, with surcharge and tax.
local function read_hours(ctx, fields)
  local hours = {}
  for _, row in ipairs(fields) do
    local from, till = seconds(row, "start_timestamp"), seconds(row, "end_timestamp")
    if from and type(row.marketprice) == "number" then
      local cents = row.marketprice / 10
      local price = (cents + ctx.settings.surcharge) * (1 + ctx.settings.vat_percent / 100)
      hours[#hours + 1] = { from = from, till = till or from + HOUR, price = math.floor(price * 1000 + 0.5) / 1000 }
    end
  end
  return hours
end

local function poll(ctx)
  local country = ctx.settings.country == "at" and "austria" or "germany"
  local origin = not ctx.settings.base_url and country or nil        -- if a section sets base_url, it replaces both addresses
  local hours, this, day = read_hours(ctx, rows(ctx:fetch({ path = "/v1/marketdata", origin = origin }, "data"), "data")), nil, {}
  local now = ctx:now()
  for _, hour in ipairs(hours) do
    if hour.from <= now and now < hour.till then this = hour end
    if os.date("%Y-%m-%d", hour.from) == os.date("%Y-%m-%d", now) then day[#day + 1] = hour end
  end
  local attributes = {}
  if this then
    attributes["custom.awattar.price"] = { value = this.price, unit = "ct/kWh" }
    attributes["custom.awattar.rank"] = rank_of(this, day)
    attributes["custom.awattar.hours_of_day"] = #day
  end
  for _, hour in ipairs(hours) do
    if this and hour.from == this.till then attributes["custom.awattar.price_next"] = { value = hour.price, unit = "ct/kWh" } end
  end
  local left = (this and this.till or now - now % HOUR + HOUR) - now + 1                 -- seconds until the next price
  local device = { id = "now", kind = "Sensor", class = "price", name = "Electricity price", attributes = attributes }
  return { device }, math.min(left, ctx.settings.poll_interval_secs)
end

return {
  name = "aWATTar",
  poll_interval_secs = 3600,
  origins = { germany = "https://api.awattar.de", austria = "https://api.awattar.at" },
  settings = {
    country = { type = "string", default = "de", values = { "de", "at" }, description = "the country of the market" },
    surcharge = { type = "number", default = 0, min = -100, max = 100, description = "cents that the tariff adds per kilowatt-hour" },
    vat_percent = { type = "number", default = 0, min = 0, max = 100, description = "value added tax, in percent" },
  },
  poll = poll,
}
