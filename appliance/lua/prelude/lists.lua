-- Sorting, inserting and removing as table.* does, in Lua. Loaded when a list has a comparator or a metatable.
local lares = ...
local select, mathtype = select, math.type
local raise = lares.raise

local function merge(from, to, low, middle, high, is_less)
  local left, right = low, middle
  for at = low, high - 1 do
    if left < middle and (right >= high or not is_less(from[right], from[left])) then
      to[at], left = from[left], left + 1
    else
      to[at], right = from[right], right + 1
    end
  end
end

local function less(one, other) return one < other end
local function smaller(one, other) return one < other and one or other end

-- Merge sort.
function lares.sort(list, length, is_less)
  local from, to, width, past = {}, {}, 1, length + 1
  for index = 1, length do from[index] = list[index] end
  while width < length do
    for low = 1, length, 2 * width do
      merge(from, to, low, smaller(low + width, past), smaller(low + 2 * width, past), is_less or less)
    end
    from, to, width = to, from, 2 * width
  end
  for index = 1, length do list[index] = from[index] end
end

function lares.insert(list, length, ...)
  local count = select('#', ...)
  if count == 1 then list[length + 1] = ... return end
  if count ~= 2 then raise("wrong number of arguments to 'insert'") end
  local at, value = ...
  if mathtype(at) ~= 'integer' or at < 1 or at > length + 1 then raise("bad argument #2 to 'insert' (position out of bounds)") end
  for index = length + 1, at + 1, -1 do list[index] = list[index - 1] end
  list[at] = value
end

function lares.remove(list, length, ...)
  local at = select('#', ...) > 0 and (...) or length
  if mathtype(at) ~= 'integer' or at ~= length and (at < 1 or at > length + 1) then
    raise("bad argument #2 to 'remove' (position out of bounds)")
  end
  local value = list[at]
  for index = at, length - 1 do list[index] = list[index + 1] end
  list[at < length and length or at] = nil
  return value
end
