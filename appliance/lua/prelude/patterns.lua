-- Patterns: the matcher is C and cannot be stopped, so a search whose worst case is beyond the budget is refused.
-- The worst case is the number of steps that backtracking could take in this very text. Giving back one character only
-- costs where what follows in the pattern could match that character; a pattern like '(%w+)%s*=' is linear.
local lares = ...
local type, select, tostring, concat, huge = type, select, tostring, table.concat, math.huge
local find, match, gmatch, gsub, sub, byte, char = string.find, string.match, string.gmatch, string.gsub, string.sub, string.byte, string.char
local charge, raise = lares.charge, lares.raise

local BUDGET = 5e7             -- steps; about a hundred million pass in a second
local library = {}
lares.patterns = library

local ALL                      -- every character, once it is needed

---------------------------------------------------------------- the pattern as a list of items
local function end_of_class(pattern, at)
  local first = byte(pattern, at)
  if first == 37 then return at + 1 end                               -- %a
  if first ~= 91 then return at end                                   -- one character
  local from = at + (byte(pattern, at + 1) == 94 and 2 or 1)          -- a ] at the beginning of a set is a member
  repeat
    local code = byte(pattern, from)
    if not code then return #pattern end
    from = from + (code == 37 and 2 or 1)
  until byte(pattern, from) == 93
  return from
end

-- An item is {class, suffix}; `kind` marks those that are no class: balance, end, and reference (a capture again).
local function items_of(pattern, is_anchored)
  local items, at = {}, is_anchored and 2 or 1
  while at <= #pattern do
    local two = sub(pattern, at, at + 1)
    if two == '%b' then
      local opening = gsub(sub(pattern, at + 2, at + 2), '%p', '%%%0')
      items[#items + 1], at = {kind = 'balance', class = opening, suffix = ''}, at + 4
    elseif two == '%f' then at = end_of_class(pattern, at + 2) + 1
    elseif find(two, '^%%%d') then items[#items + 1], at = {kind = 'reference', class = '.', suffix = '?'}, at + 2
    elseif find(two, '^[()]') then at = at + 1
    elseif sub(pattern, at) == '$' then items[#items + 1], at = {kind = 'end', suffix = ''}, at + 1
    else
      local last = end_of_class(pattern, at)
      local suffix = match(pattern, '^[*+?-]', last + 1) or ''
      items[#items + 1], at = {class = sub(pattern, at, last), suffix = suffix}, last + 1 + #suffix
    end
  end
  return items
end

---------------------------------------------------------------- its worst case in a text
local function longest_run(text, class)
  if class == '.' then return #text end
  local longest = 0
  for from, to in gmatch(text, '()' .. class .. '+()') do
    if to - from > longest then longest = to - from end
  end
  return longest
end

-- Whether what begins at this item can begin with a character of the class. At the pattern's end nothing can fail.
local function could_begin(items, index, class)
  local members = {}
  if not ALL then
    ALL = ''
    for code = 0, 255 do ALL = ALL .. char(code) end
  end
  for each in gmatch(ALL, class) do members[#members + 1] = each end
  members = concat(members)
  for each = index, #items do
    local item = items[each]
    if item.kind == 'reference' then return true end
    if item.kind == 'end' then return false end
    if find(members, item.class) then return true end
    if item.suffix == '' or item.suffix == '+' then return false end
  end
  return false
end

-- The steps from one start, and how many repetitions multiply each other. Floats, for the product is soon beyond 2^63.
local function steps_from(items, index, text)
  local item = items[index]
  if not item or item.kind == 'end' then return 1.0, 0 end
  local rest, factors = steps_from(items, index + 1, text)
  if item.kind then return #text + 2 * rest, factors end
  if item.suffix == '' then return 1 + rest, factors end
  local run = item.suffix == '?' and 2 or longest_run(text, item.class) + 1
  if could_begin(items, index + 1, item.class) then return run * rest, factors + 1 end
  return run + rest, factors
end

-- How many places the search can begin at: those where the items before the first repetition match.
local function starts_in(items, text)
  local prefix, count = '()', 0
  for index, item in next, items do
    if item.kind or item.suffix ~= '' then break end
    prefix, count = prefix .. item.class, index
  end
  if count == 0 then return #text + 1 end
  local found = 0
  for _ in gmatch(text, prefix) do found = found + 1 end
  return found * count
end

-- In how many ways so many borders can be put into the text, each behind the one before it.
local function divisions(length, borders)
  local ways = 1.0
  for each = 1, borders do ways = ways * (length + each) / each end
  return ways
end

local function worst_case(text, pattern, name)
  local is_anchored = byte(pattern, 1) == 94 and name ~= 'gmatch'      -- gmatch takes ^ for a character
  local items = items_of(pattern, is_anchored)
  local starts = is_anchored and 1 or starts_in(items, text)
  local steps, factors = steps_from(items, 1, text)
  local ways = #items * divisions(#text, factors + (is_anchored and 0 or 1))
  return #text + (factors > 1 and steps * starts > ways and ways or steps * starts)
end

-- A bound that costs nothing, and is enough for most searches.
local function bound(text, pattern)
  local _, repetitions = gsub(pattern, '[*+%-]', '')
  local _, others = gsub(pattern, '%%[b%d]', '')
  local _, options = gsub(pattern, '%?', '')
  return (#text + 1) ^ (repetitions + others + 1) * 2.0 ^ options
end

local function guard_plain(text, pattern)
  if type(text) ~= 'string' or type(pattern) ~= 'string' then return end
  local steps = 1.0 * #text * #pattern
  if steps > 4e9 then raise('string.find: looking for so long a text in one of ' .. #text .. ' characters could take too long') end
  charge(#text + steps // 100)
end

local function guard(text, pattern, name)
  if type(text) ~= 'string' or type(pattern) ~= 'string' then return end
  charge(#text)
  if #pattern > 4096 or (bound(text, pattern) > BUDGET and worst_case(text, pattern, name) > BUDGET) then
    raise('string.' .. name .. ': this pattern could take too long on a text of ' .. #text ..
      ' characters; use a simpler pattern (fewer *, +, - or ? in a row that match the same characters) or a shorter text')
  end
end

---------------------------------------------------------------- the library
function library.find(text, pattern, init, plain)
  if plain then guard_plain(text, pattern) else guard(text, pattern, 'find') end
  return find(text, pattern, init, plain)
end

function library.match(text, pattern, init)
  guard(text, pattern, 'match')
  return match(text, pattern, init)
end

function library.gmatch(text, pattern, init)
  guard(text, pattern, 'gmatch')
  return gmatch(text, pattern, init)
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
    return gsub(text, pattern, replacement, most)
  end
  return substitute(text, pattern, replacement, most and most + 0 or huge)
end
