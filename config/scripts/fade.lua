-- Fades: from one number to another, step by step.

local fade = {}

-- The numbers of a fade in so many steps, whole and even; the last is where it ends:
-- fade.levels(10, 40, 3) is { 20, 30, 40 }.
---@param from integer
---@param to integer
---@param steps integer
---@return integer[]
function fade.levels(from, to, steps)
  local levels = {}
  for step = 1, steps do
    levels[step] = from + (to - from) * step // steps
  end
  return levels
end

-- Call `set` with each number, all within so many seconds, a pause before each. It ends early when `set` returns false.
---@param ctx Context
---@param seconds number
---@param levels integer[]
---@param set fun(level: integer): boolean?
function fade.run(ctx, seconds, levels, set)
  for _, level in ipairs(levels) do
    ctx:sleep(seconds / #levels)
    if set(level) == false then
      return
    end
  end
end

return fade
