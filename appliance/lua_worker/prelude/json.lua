-- JSON encoding of all values that the hub and Lua exchange.
local lares = ...
local error, type, next, tonumber, rawlen, rawget, setmetatable =
  error, type, next, tonumber, rawlen, rawget, setmetatable
local find, match, sub, byte, format, gsub = string.find, string.match, string.sub, string.byte, string.format, string.gsub
local concat, mathtype, huge, utf8char, utf8len = table.concat, math.type, math.huge, utf8.char, utf8.len

local MAX_DEPTH = 32
local MAX_VALUE_BYTES, MAX_TABLES = 262144, 20000  -- limits of one value for the hub, which parses it on the event loop
local arrays = setmetatable({}, {__mode = 'k'})   -- tables that were decoded from arrays, so that an empty array is encoded as []

---------------------------------------------------------------- reading: compact JSON that the hub wrote or checked
local ESCAPES = {b = '\b', f = '\f', n = '\n', r = '\r', t = '\t'}

local high                     -- the first half of a surrogate pair; the second half follows immediately

local function unescape(kind, digits)
  if kind ~= 'u' then return (ESCAPES[kind] or kind) .. digits end
  local code = tonumber(digits, 16)
  if code & 0xFC00 == 0xD800 then
    high = code
    return ''
  end
  if code & 0xFC00 == 0xDC00 then code = 0x10000 + ((high & 0x3FF) << 10 | code & 0x3FF) end
  return utf8char(code)
end

-- Return the string after the quote, and the position after the string.
local function read_string(text, start)
  local plain, last = match(text, '^([^"\\]*)"()', start)
  if plain then return plain, last end
  local from = start
  while true do
    local at = find(text, '["\\]', from)
    if byte(text, at) == 34 then
      return gsub(sub(text, start, at - 1), '\\(.)(%x?%x?%x?%x?)', unescape), at + 1
    end
    from = at + 2
  end
end

local read_value

local function read_object(text, at)
  local object, key = {}, nil
  if byte(text, at + 1) == 125 then return object, at + 2 end
  repeat
    key, at = read_string(text, at + 2)
    object[key], at = read_value(text, at + 1)
  until byte(text, at) == 125
  return object, at + 1
end

local function read_array(text, at)
  local array, count = {}, 0
  arrays[array] = true
  if byte(text, at + 1) == 93 then return array, at + 2 end
  repeat
    count = count + 1
    array[count], at = read_value(text, at + 1)
  until byte(text, at) == 93
  return array, at + 1
end

-- A null, or a number that is too large for Lua, becomes nil.
read_value = function(text, at)
  local first = byte(text, at)
  if first == 34 then return read_string(text, at + 1) end
  if first == 123 then return read_object(text, at) end
  if first == 91 then return read_array(text, at) end
  if first == 116 then return true, at + 4 end
  if first == 102 then return false, at + 5 end
  if first == 110 then return nil, at + 4 end
  local digits, last = match(text, '^([-+0-9.eE]+)()', at)
  local number = tonumber(digits)
  if number == huge or number == -huge then number = nil end
  return number, last
end

function lares.decode(text)
  return (read_value(text, 1))
end

---------------------------------------------------------------- writing
local function escape(character)
  if character == '"' or character == '\\' then return '\\' .. character end
  return format('\\u%04x', byte(character))
end

local writer                   -- the state of encoding: pieces, count, bytes, functions, and the path to the current value

local function put(piece)
  writer.count = writer.count + 1
  writer[writer.count] = piece
  writer.bytes = writer.bytes + #piece
  if writer.bytes > MAX_VALUE_BYTES then
    writer.path = {}           -- the whole value is too large, so the error must not name a field
    error({'is larger than 256 KiB'}, 0)
  end
end

local function put_string(text)
  if #text > MAX_VALUE_BYTES then error({'is larger than 256 KiB'}, 0) end
  if not utf8len(text) then error({'holds text that is not valid UTF-8'}, 0) end
  if find(text, '[%c"\\]') then text = gsub(text, '[%c"\\]', escape) end
  put('"' .. text .. '"')
end

local function put_number(value)
  if mathtype(value) == 'integer' then return put(format('%d', value)) end
  if value ~= value or value == huge or value == -huge then error({'holds a number that is not finite'}, 0) end
  local text = format('%.17g', value)
  put(find(text, '[.e]') and text or text .. '.0')
end

local MIXED = 'mixes list items with named fields, or its list has gaps'
local put_value

local function put_array(array, length, depth)
  for key in next, array do
    if mathtype(key) ~= 'integer' or key < 1 or key > length then error({MIXED}, 0) end
  end
  put('[')
  for index = 1, length do
    if index > 1 then put(',') end
    local item = rawget(array, index)
    writer.path[depth] = item ~= nil and index or nil
    if item == nil then error({MIXED}, 0) end
    put_value(item, depth + 1)
  end
  put(']')
end

local function put_object(object, depth)
  local separator = ''
  put('{')
  for key, value in next, object do
    if type(key) ~= 'string' then error({'has a key that is not text (a ' .. type(key) .. ')'}, 0) end
    if writer.functions and key == lares.FUNCTION then error({'has a key that is not allowed'}, 0) end
    writer.path[depth] = key
    put(separator)
    put_string(key)
    put(':')
    put_value(value, depth + 1)
    separator = ','
  end
  put('}')
end

local function put_table(value, depth)
  if depth > MAX_DEPTH then error({'is nested more than 32 levels deep, or contains itself'}, 0) end
  writer.tables = writer.tables + 1
  if writer.tables > MAX_TABLES then error({'holds more than 20000 tables'}, 0) end
  local length = rawlen(value)
  if length > 0 or (arrays[value] and next(value) == nil) then put_array(value, length, depth) else put_object(value, depth) end
  writer.path[depth] = nil
end

put_value = function(value, depth)
  local kind = type(value)
  if kind == 'string' then put_string(value)
  elseif kind == 'number' then put_number(value)
  elseif kind == 'boolean' then put(value and 'true' or 'false')
  elseif kind == 'nil' then put('null')
  elseif kind == 'table' then put_table(value, depth)
  elseif kind == 'function' and writer.functions then
    put(format('{"%s":%d}', gsub(lares.FUNCTION, '%z', '\\u0000'), lares.line_of(value)))
  else error({'holds a ' .. kind .. ', which is not data'}, 0) end
end

-- Return the value as JSON. For an invalid value, return nil and a sentence that begins with `what` and the path.
-- If `functions` is true, encode a function as the line of its definition.
function lares.encode(value, what, functions)
  writer = {count = 0, bytes = 0, tables = 0, path = {}, functions = functions}
  local ok, fault = lares.raw_pcall(put_value, value, 1)
  if ok then return concat(writer, '', 1, writer.count) end
  lares.caught(ok, fault)
  if type(fault) ~= 'table' then return nil, fault end
  local path = what
  for _, step in next, writer.path do
    path = path .. (mathtype(step) and '[' .. step .. ']' or '.' .. sub(step, 1, 60))
  end
  return nil, path .. ' ' .. fault[1]
end

-- Return the value as JSON. If JSON cannot represent the value, raise an error at the user's line.
function lares.encoded(value, what)
  if value == nil then return 'null' end
  local text, fault = lares.encode(value, what)
  if not text then lares.raise(fault) end
  return text
end
