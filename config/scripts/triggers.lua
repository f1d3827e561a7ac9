-- Triggers over devices that are named at the top of a file, and rest while none are.

local triggers = {}

-- The triggers, each for these devices; without devices, an error that nothing reports: the automation is sound, and rests.
---@param device_ids string[]
---@param wanted Trigger[]
---@return Trigger[]
function triggers.of(device_ids, wanted)
  if #device_ids == 0 then
    return { { type = "system_error", contains = "no device is named here yet" } }
  end
  for _, trigger in ipairs(wanted) do
    if trigger.type ~= "timer" then
      trigger.device_id = device_ids
    end
  end
  return wanted
end

return triggers
