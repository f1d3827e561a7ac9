-- Requests: how Lua asks the hub for something. The coroutine yields a private tag, the operation and JSON; the hub
-- resumes it with the answer. A request from within the user's own coroutines is passed up to the outermost.
local lares = ...
local error, rawequal, find = error, rawequal, string.find
local yield, resume, is_yieldable = coroutine.yield, coroutine.resume, coroutine.isyieldable
local caught, raise = lares.caught, lares.raise

local REQUEST = {}
local NO_WAY = ' cannot be used here: Lua cannot pause inside a metamethod or callback that a library function calls'
local ok, body, name           -- the answer

function lares.answer(...)
  ok, body, name = ...
end

-- The raw answer: its text, and for a script also its name.
function lares.request(operation, payload, what)
  if lares.stopped then lares.stop(lares.stopped) end
  if not is_yieldable() then raise(what .. NO_WAY) end
  yield(REQUEST, operation, payload)
  local text = body
  body = nil
  if ok then return text, name end
  raise(text)
end

local function pass_up(co, is_ok, tag, ...)
  if is_ok and rawequal(tag, REQUEST) then
    if is_yieldable() then yield(REQUEST, ...) else ok, body = false, 'ctx' .. NO_WAY end
    return pass_up(co, resume(co))
  end
  if not is_ok or lares.stopped then caught(is_ok, tag) end
  return is_ok, tag, ...
end

-- As coroutine.resume, for the user's coroutines.
function lares.resume(co, ...)
  return pass_up(co, resume(co, ...))
end

-- One resume of the outermost coroutine: is_ok, whether it asks for something, and what it yielded or returned.
local function told(is_ok, tag, ...)
  if is_ok and rawequal(tag, REQUEST) then return true, true, ... end
  return is_ok, false, tag
end

function lares.advance(co)
  return told(resume(co))
end
