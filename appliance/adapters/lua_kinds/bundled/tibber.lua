-- The price of electricity from Tibber, for each home of the account. Create the token at developer.tibber.com.
--
--   [adapters.tibber]
--   token_file = "config/tibber-token"

local QUERY = "{ viewer { homes { id appNickname currentSubscription { priceInfo { current { total currency level startsAt } "
  .. "today { total startsAt } tomorrow { total startsAt } } } } } }"

-- Return the rank of the present hour (1 is the cheapest), the number of hours, and the mean price of the day.
local function place(now, hours)
  local rank, sum, count = 1, 0, 0
  for _, hour in ipairs(hours) do
    if type(hour.total) == "number" then
      sum, count = sum + hour.total, count + 1
      if hour.total < now.total or hour.total == now.total and tostring(hour.startsAt) < tostring(now.startsAt) then rank = rank + 1 end
    end
  end
  return rank, count, count > 0 and sum / count or nil
end

local function home_of(each)
  local prices = part(each, "currentSubscription", "priceInfo")
  local now, name = part(prices, "current"), text(each.appNickname, "Electricity price")
  local device = { id = each.id, kind = "Sensor", class = "price", name = name, attributes = {} }
  if type(now.total) ~= "number" then return device end
  local unit = text(now.currency, "?") .. "/kWh"
  local rank, count, mean = place(now, rows(prices, "today"))
  device.attributes = {
    ["custom.tibber.price"] = measure(now.total, unit), ["custom.tibber.level"] = now.level, ["custom.tibber.mean"] = measure(mean, unit),
    ["custom.tibber.rank"] = rank, ["custom.tibber.hours_of_day"] = count, ["custom.tibber.knows_tomorrow"] = #part(prices, "tomorrow") > 0,
  }
  return device
end

local function poll(ctx)
  local answer = ctx:http { method = "POST", path = "/v1-beta/gql", json = { query = QUERY } }
  if answer.status == 401 then error("Tibber rejects the token; create one at developer.tibber.com", 0) end
  local found = {}
  for _, each in ipairs(rows(answer.json, "data", "viewer", "homes")) do
    if type(each.id) == "string" then found[#found + 1] = home_of(each) end
  end
  if #found == 0 then
    local fault = text(part(answer.json, "errors", 1).message)
    error(fault and "Tibber answers: " .. fault:sub(1, 300) or "Tibber answers without homes (status " .. answer.status .. ")", 0)
  end
  local left = 3600 - ctx:now() % 3600 + 5            -- the price changes at the next hour
  return found, math.min(left, ctx.settings.poll_interval_secs)
end

return {
  name = "Tibber",
  base_url = "https://api.tibber.com",
  settings = { token = { type = "string", description = "the token of the account" } },
  poll_interval_secs = 3600,
  poll = poll,
}
