-- Requests: how Lua asks the hub for something. The outermost coroutine yields the operation and JSON, and is resumed
-- with the answer, so that waiting needs no thread. Where Lua cannot pause, in the user's own coroutines and in
-- what a library function calls, the thread waits.
local lares = ...
local rawequal, running, yield, is_yieldable = rawequal, coroutine.running, coroutine.yield, coroutine.isyieldable
local ask, take, limit, place_at = lares.ask, lares.take, lares.limit, lares.place_at

local ok, body, name           -- the answer

function lares.answer(...)
  ok, body, name = ...
end

-- The raw answer: its text, and for a script also its name.
function lares.request(operation, payload)
  if lares.stopped then lares.stop(lares.stopped) end
  local place = place_at(4)
  if is_yieldable() and rawequal(running(), lares.main) then
    yield(operation, payload, place)
  else
    local answer = ask(operation, payload, place)
    if not answer then lares.check() end
    ok, body, name = answer == 1, take(), take()
    limit()
  end
  local text, file = body, name
  body, name = nil, nil
  if ok then return text, file end
  lares.raise(text)
end
