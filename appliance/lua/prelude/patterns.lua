-- Patterns: the matcher is C and cannot be stopped, so a search whose worst case is beyond the budget is refused.
local lares = ...
local type, select, tostring, concat, huge = type, select, tostring, table.concat, math.huge
local find, gsub, sub, byte = string.find, string.gsub, string.sub, string.byte
local raw = string             -- called as fields, so that Lua knows their names where it complains of an argument
local charge, raise = lares.charge, lares.raise

local BUDGET = 1e8             -- steps; as many pass in a second or less
local library = {}
lares.patterns = library

-- A bound that costs nothing, and is enough for most searches.
local function bound(text, pattern)
  local _, repetitions = gsub(pattern, '[*+%-]', '')
  local _, others = gsub(pattern, '%%[b%d]', '')
  local _, options = gsub(pattern, '%?', '')
  return (#text + 1) ^ (repetitions + others + 1) * 2.0 ^ options
end

lares.rarely('worst_case', 'worst_case')

local function guard_plain(text, pattern)
  if type(text) ~= 'string' or type(pattern) ~= 'string' then return end
  local steps = 1.0 * #text * #pattern
  if steps > 4e9 then raise('string.find: looking for so long a text in one of ' .. #text .. ' characters could take too long') end
  charge(#text + steps // 100)
end

local function guard(text, pattern, name)
  if type(text) ~= 'string' or type(pattern) ~= 'string' then return end
  charge(#text)
  if #pattern > 4096 or (bound(text, pattern) > BUDGET and lares.worst_case(text, pattern, name) > BUDGET) then
    raise('string.' .. name .. ': this pattern could take too long on a text of ' .. #text ..
      ' characters; use a simpler pattern (fewer *, +, - or ? in a row that match the same characters) or a shorter text')
  end
end

---------------------------------------------------------------- the library
function library.find(text, pattern, init, plain)
  if plain then guard_plain(text, pattern) else guard(text, pattern, 'find') end
  return raw.find(text, pattern, init, plain)
end

function library.match(text, pattern, init)
  guard(text, pattern, 'match')
  return raw.match(text, pattern, init)
end

function library.gmatch(text, pattern, init)
  guard(text, pattern, 'gmatch')
  return raw.gmatch(text, pattern, init)
end

-- What a match is replaced by, as the callback says.
local function replaced(callback, text, from, to, ...)
  local value
  if select('#', ...) > 0 then value = callback(...) else value = callback(sub(text, from, to)) end
  if not value then return sub(text, from, to) end
  if type(value) == 'string' or type(value) == 'number' then return tostring(value) end
  raise('invalid replacement value (a ' .. type(value) .. ')')
end

-- gsub with a callback, in Lua, so that the callback may call ctx.
local function substitute(text, pattern, callback, most)
  local out, at, last_end, count = {}, 1, nil, 0
  local is_anchored = byte(pattern, 1) == 94
  local function take(from, to, ...)
    if not from then at = nil return end
    if to < from and from == last_end then                          -- empty, right behind the match before: go on by one
      out[#out + 1] = sub(text, at, from)
      at = from + 1
      return
    end
    out[#out + 1] = sub(text, at, from - 1)
    out[#out + 1] = replaced(callback, text, from, to, ...)
    at, last_end, count = to + 1, to + 1, count + 1
  end
  local rest = 1
  while at and at <= #text + 1 and count < most do
    take(find(text, pattern, at))
    rest = at or rest
    if is_anchored then break end
  end
  out[#out + 1] = sub(text, rest)
  return concat(out), count
end

function library.gsub(text, pattern, replacement, most)
  guard(text, pattern, 'gsub')
  if type(text) ~= 'string' or type(pattern) ~= 'string' or type(replacement) ~= 'function' then
    return raw.gsub(text, pattern, replacement, most)
  end
  return substitute(text, pattern, replacement, most and most + 0 or huge)
end
