-- Adapter kinds: the ctx of their functions, and the tables json, xml, and crypto. Each call to the hub is a request,
-- in the same way as in ctx.lua. Bytes are sent as text, with one character per byte (U+0000 to U+00FF).
local lares = ...
local type, tostring, tonumber, rawequal, next = type, tostring, tonumber, rawequal, next
local ipairs, select, error = ipairs, select, error
local find, gsub, char, byte, utf8char, floor = string.find, string.gsub, string.char, string.byte, utf8.char, math.floor
local sort = table.sort
local encoded, decode, raise, request, environment = lares.encoded, lares.decode, lares.raise, lares.request, lares.environment

local encode, rawlen, rawget, rawset = lares.encode, rawlen, rawget, rawset

local MAX_NUMBER_CHARS = 40   -- maximum length of a text that is converted to a number
local MAX_MEMORY_BYTES = 65536   -- maximum size of ctx.memory as JSON

local function as_text(bytes)
  return (gsub(bytes, '[\128-\255]', function(each) return utf8char(byte(each)) end))
end

local function as_bytes(text)
  return (gsub(text, '[\194\195][\128-\191]', function(pair)
    local first, second = byte(pair, 1, 2)
    return char((first & 3) << 6 | second & 63)
  end))
end

local function expect(value, kind, number, name)
  if not find(kind, type(value), 1, true) then
    raise('bad argument #' .. number .. ' to ' .. name .. ' (' .. kind .. ' expected, got ' .. type(value) .. ')')
  end
end

local function ask(operation, what, first, second)
  local arguments = '[' .. encoded(first, what .. ': argument #1') .. ',' .. encoded(second, what .. ': argument #2') .. ',null]'
  return decode(request(operation, arguments))
end

---------------------------------------------------------------- json, xml, crypto
local json, xml, crypto = {}, {}, {hex = {}, base64 = {}}

-- Return the value of a JSON text, or nil and a sentence.
function json.decode(text)
  expect(text, 'string', 1, 'json.decode')
  if not utf8.len(text) then return nil, 'is not UTF-8' end
  local found = ask('json', 'json.decode', text)
  return found.value, found.fault
end

function json.encode(value)
  return encoded(value, 'json.encode: the value')
end

function xml.decode(text)
  expect(text, 'string', 1, 'xml.decode')
  local found = ask('xml', 'xml.decode', as_text(text))
  return found.value, found.fault
end

local function compute(name, given)
  for key, value in next, given do
    if type(value) == 'string' then given[key] = as_text(value) end
  end
  return as_bytes(ask('crypto', 'crypto.' .. name, name, given))
end

for _, name in next, {'md5', 'sha1', 'sha256'} do
  crypto[name] = function(text)
    expect(text, 'string', 1, 'crypto.' .. name)
    return compute(name, {text = text})
  end
end

function crypto.hmac(algorithm, key, text)
  expect(algorithm, 'string', 1, 'crypto.hmac') expect(key, 'string', 2, 'crypto.hmac') expect(text, 'string', 3, 'crypto.hmac')
  return compute('hmac', {algorithm = algorithm, key = key, text = text})
end

function crypto.pbkdf2(algorithm, password, salt, rounds, length)
  expect(algorithm, 'string', 1, 'crypto.pbkdf2') expect(password, 'string', 2, 'crypto.pbkdf2')
  expect(salt, 'string', 3, 'crypto.pbkdf2') expect(rounds, 'number', 4, 'crypto.pbkdf2')
  return compute('pbkdf2', {algorithm = algorithm, key = password, text = salt, rounds = rounds, length = length})
end

function crypto.random(count)
  expect(count, 'number', 1, 'crypto.random')
  return compute('random', {length = count})
end

for _, form in next, {'hex', 'base64'} do
  for _, way in next, {'encode', 'decode'} do
    local name = form .. '.' .. way
    crypto[form][way] = function(text)
      expect(text, 'string', 1, 'crypto.' .. name)
      return compute(name, {text = text})
    end
  end
end

---------------------------------------------------------------- reading answers
-- Return the number in a value. The value may be a text, because some devices send numbers as text. Return nil for
-- any other value.
local function number_of(value)
  if type(value) == 'string' then
    value = #value <= MAX_NUMBER_CHARS and find(value, '^%s*[-+]?%d*%.?%d+%s*$') and tonumber(value)
  end
  return type(value) == 'number' and value or nil
end

-- Return a measurement or, if `period` is given, an accumulation. Return nil if the value is not a number. `parts` is
-- the number of device units in one unit.
local function measure(value, unit, period, parts)
  value = number_of(value)
  if not value then return nil end
  return {value = parts and value / parts or value, unit = unit, period = period}
end

-- Return the nearest integer. Return nil if the value is not a number.
local function round(value)
  value = number_of(value)
  return value and floor(value + 0.5) or nil
end

-- Return the nested table at this path. Return an empty table if the path is missing.
local function part(of, ...)
  for index = 1, select('#', ...) do
    local name = select(index, ...)
    of = type(of) == 'table' and name ~= nil and of[name] or nil
  end
  return type(of) == 'table' and of or {}
end

-- Return the tables in the list at this path.
local function rows(of, ...)
  local found = {}
  for _, each in ipairs(part(of, ...)) do
    if type(each) == 'table' then found[#found + 1] = each end
  end
  return found
end

-- Iterate over a table in the order of its names. Each step returns a name and the table of this name: `for name,
-- each in parts(of) do`.
local function parts(of, ...)
  local found, names, index = part(of, ...), {}, 0
  for name in next, found do
    if type(name) == 'string' then names[#names + 1] = name end
  end
  sort(names)
  return function()
    index = index + 1
    return names[index], part(found, names[index])
  end
end

-- Return the first value that is a non-empty text.
local function text(...)
  for index = 1, select('#', ...) do
    local value = select(index, ...)
    if type(value) == 'string' and value ~= '' then return value end
  end
end

-- Only files of kinds have these globals, because only Lua states for kinds run this file.
environment.json, environment.xml, environment.crypto = json, xml, crypto
environment.measure, environment.round, environment.text = measure, round, text
environment.part, environment.parts, environment.rows = part, parts, rows

---------------------------------------------------------------- ctx
local METHODS = {http = 'table', send = 'string or table', ask = 'table', keep = 'string', kept = 'string'}   -- types of the first argument

-- Return a sentence for a status that reports no property of this kind of device. Return nil for any other status.
local function fault_of(answer)
  if answer.moved_to then return 'the address of the device is now ' .. answer.moved_to .. '; correct base_url' end
  if answer.status == 429 then return 'the device at this address is busy' end
  if answer.status >= 500 then return 'the device at this address failed' end
end

-- Request and response bodies of ctx:http are bytes.
local function exchange(given)
  local sent = {}
  for key, value in next, given do sent[key] = value end
  if type(sent.body) == 'string' then sent.body = as_text(sent.body) end
  local answer = ask('http', 'ctx:http', sent)
  answer.body, answer.fault = as_bytes(answer.body), fault_of(answer)
  return answer
end

-- Return the first argument of the kind's function. If the job has `bytes`, the argument is these bytes, or a table
-- that contains them as `body`.
local function first_of(job)
  local first = job.first
  if not job.bytes then return first end
  if first == nil then return as_bytes(job.bytes) end
  first.body = as_bytes(job.bytes)
  return first
end

-- Return the answer's JSON. If `field` is given, the JSON must contain the field. If the answer has another status,
-- raise the sentence for this status in `reasons`.
local function fetch(kind, given, field, reasons)
  local asked = type(given) == 'string' and {path = given} or given
  expect(asked, 'table', 1, 'ctx:fetch')
  local answer = exchange(asked)
  local found = answer.json
  if answer.status == 200 and type(found) == 'table' and (field == nil or found[field] ~= nil) then return found end
  local lack = found == nil and 'not JSON' or type(found) ~= 'table' and 'no table' or 'without ' .. tostring(field)
  local place = ' (' .. asked.path .. ': status ' .. answer.status .. (answer.status == 200 and ', ' .. lack or '') .. ')'
  local stated = answer.status == 200 and type(found) == 'table' and text(found.status, found.message, found.error)
  local fault = answer.fault or stated and 'the device at this address answers "' .. stated:sub(1, 100) .. '"'
    or 'the device at this address is not a ' .. kind
  error(reasons and reasons[answer.status] or fault .. place, 0)
end

-- The parts of a device that can be dropped without the device
local PARTS = {name = true, class = true, info = true, attributes = true, commands = true, events = true}

-- Return the entries that JSON can represent. Add each other entry to `faults`: the field, the key, and a sentence.
local function encodable(field, entries, faults)
  local kept, length = {}, field ~= 'attributes' and rawlen(entries) or 0
  local function take(key, each)
    local name, fault = encode(key, '')
    if name then fault = select(2, encode(each, '')) end
    if fault then faults[#faults + 1] = {field, name and tostring(key) or '', fault}
    else kept[length > 0 and #kept + 1 or key] = each end
  end
  if length > 0 then for index = 1, length do take(index, rawget(entries, index)) end
  else for key, each in next, entries do take(key, each) end end
  return kept
end

-- Return a device without the parts that JSON cannot represent, and with a list of these parts. If the device is still
-- not valid, return a sentence in its place.
local function encodable_row(row, fault)
  local id = type(row) == 'table' and rawget(row, 'id')
  id = encode(id, '') and id or ''
  local kept, faults = {}, {}
  for field, part in next, type(row) == 'table' and id ~= '' and row or {} do
    local _, is_faulty = encode(part, '')
    if not is_faulty or not PARTS[field] then kept[field] = part
    elseif type(part) == 'table' then kept[field] = encodable(field, part, faults)
    else faults[#faults + 1] = {field, '', is_faulty} end
  end
  kept[lares.FAULT] = faults
  return #faults > 0 and encode(kept, '') and kept or {id = id, [lares.FAULT] = fault}
end

-- Return a function's result as JSON. Drop the devices, or the parts of devices, that JSON cannot represent.
local function returned(value, what, tells_devices)
  local text, refusal = encode(value, what)
  if text then return text end
  if not tells_devices then raise(refusal) end
  local rows = type(value) == 'table' and rawget(value, 'devices') or value
  for index = 1, type(rows) == 'table' and rawlen(rows) or 0 do
    local row = rawget(rows, index)
    local _, fault = encode(row, '')
    if fault then rawset(rows, index, encodable_row(row, fault)) end
  end
  return encoded(value, what)
end

-- Return the second result as JSON. An invalid pause of a poll is returned as text, so that its devices are not lost.
local function second_result(value, path, at)
  local what = at .. 'the second result of ' .. path
  if path ~= 'poll' or encode(value, what) then return encoded(value, what) end
  return encode(tostring(value), what) or '"?"'
end

-- `at` is the position of the function. The errors of its results begin with it, because no line runs then.
function lares.call_kind(job, path, run, kind, at)
  local ctx = {settings = job.settings, memory = job.memory}
  local function check_self(self, name)
    if not rawequal(self, ctx) then raise('call it with a colon: ctx:' .. name .. '(...), not ctx.' .. name .. '(...)') end
  end
  for name, expected in next, METHODS do
    ctx[name] = function(self, first, second)
      check_self(self, name)
      expect(first, expected, 1, 'ctx:' .. name)
      if name == 'http' then return exchange(first) end
      return ask(name, 'ctx:' .. name, first, second)
    end
  end
  function ctx.fetch(self, given, field, reasons)
    check_self(self, 'fetch')
    return fetch(tostring(kind), given, field, reasons)
  end
  function ctx.log(self, level, message, fields)
    check_self(self, 'log')
    lares.write(level, message, fields)
  end
  function ctx.now(self)
    check_self(self, 'now')
    return lares.instant()
  end
  local first, second = run(ctx, first_of(job), job.second)
  local position = encoded(at, 'the position')
  at = at .. ': '
  if type(ctx.memory) ~= 'table' then raise(at .. 'ctx.memory must be a table, not ' .. tostring(ctx.memory)) end
  local memory = encoded(ctx.memory, at .. 'ctx.memory')
  if #memory > MAX_MEMORY_BYTES then raise(at .. 'ctx.memory is larger than 64 KiB') end
  return '{"first":' .. returned(first, at .. 'the result of ' .. path, job.path[1] ~= 'operations') .. ',"second":'
    .. second_result(second, path, at) .. ',"memory":' .. memory .. ',"at":' .. position .. '}'
end
