-- Schedule: the local time of the home. All functions use the home's clocks (locale.timezone).
--
-- The optional `at` is an instant from `os.time()`; by default it is now. A day is named as in triggers:
-- "mon" to "sun".

local schedule = {}

local DAYS = { "sun", "mon", "tue", "wed", "thu", "fri", "sat" }
local MINS_PER_DAY = 24 * 60

-- Return the minutes after midnight of "HH:MM". Raises an error for any other text.
---@param text string
---@return integer
function schedule.minutes(text)
  local hour, minute = text:match("^(%d%d):(%d%d)$")
  if not hour or tonumber(hour) > 23 or tonumber(minute) > 59 then
    error(('"%s" is no time: write "HH:MM", "07:30"'):format(text), 2)
  end
  return tonumber(hour) * 60 + tonumber(minute)
end

-- Return whether the time is between `from` (included) and `to` (excluded). The window can include midnight.
---@param from string
---@param to string
---@param at? integer
---@return boolean
function schedule.is_between(from, to, at)
  local first, last = schedule.minutes(from), schedule.minutes(to)
  local now = os.date("*t", at)
  local past = (now.hour * 60 + now.min - first) % MINS_PER_DAY
  return past < (last - first) % MINS_PER_DAY
end

-- Return the day of the week.
---@param at? integer
---@return Day
function schedule.day(at)
  return DAYS[os.date("*t", at).wday]
end

-- Return whether the day is Saturday or Sunday.
---@param at? integer
---@return boolean
function schedule.is_weekend(at)
  local day = schedule.day(at)
  return day == "sat" or day == "sun"
end

-- Return the seconds until this time of day, at least 1, for timers and sleeps. The result is correct on days of 23
-- and 25 hours too.
---@param time string
---@param at? integer
---@return integer
function schedule.secs_until(time, at)
  local minutes, now = schedule.minutes(time), at or os.time()
  local date = os.date("*t", now)
  for day = date.day, date.day + 1 do
    local wanted = { year = date.year, month = date.month, day = day, hour = minutes // 60, min = minutes % 60, sec = 0 }
    local instant = os.time(wanted)
    if instant > now then
      return instant - now
    end
  end
  return MINS_PER_DAY * 60
end

return schedule
