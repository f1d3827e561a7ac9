-- The worst case of a pattern in a text: the number of steps that backtracking could take in this very text.
-- Giving back one character only costs where what follows in the pattern could match that character; a pattern like
-- '(%w+)%s*=' is linear. Loaded when a pattern is first suspected (patterns.lua).
local lares = ...
local next, concat = next, table.concat
local find, match, gmatch, gsub, sub, byte, char = string.find, string.match, string.gmatch, string.gsub, string.sub, string.byte, string.char

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

-- How many places a match can begin at: those where what comes before the first repetition is found.
local function starts_in(items, text)
  local prefix, count, at = '', 0, 0
  for _, item in next, items do
    local is_there = item.kind == 'balance' or not item.kind and (item.suffix == '' or item.suffix == '+')
    if is_there then prefix = prefix .. item.class end
    if item.kind or item.suffix ~= '' then break end
  end
  if prefix == '' then return #text + 1 end
  prefix = '()' .. prefix .. '()'                                      -- so that ^ and $ are characters in it
  while true do
    at = find(text, prefix, at + 1)
    if not at then return count end
    count = count + 1
  end
end

-- In how many ways so many borders can be put into the text, each behind the one before it.
local function divisions(length, borders)
  local ways = 1.0
  for each = 1, borders do ways = ways * (length + each) / each end
  return ways
end

function lares.worst_case(text, pattern, name)
  local is_anchored = byte(pattern, 1) == 94 and name ~= 'gmatch'      -- gmatch takes ^ for a character
  local items = items_of(pattern, is_anchored)
  local starts = is_anchored and 1 or starts_in(items, text)
  local steps, factors = steps_from(items, 1, text)
  local ways = #items * divisions(#text, factors + (is_anchored and 0 or 1))
  return #text + (factors > 1 and steps * starts > ways and ways or steps * starts)
end
