-- Presence by hooks: a phone reports when it comes home and when it leaves.
--
-- Make one key for each hook, as in `lares key create --label anna --role hook --hook anna_home`. The phone calls
-- /hooks/anna_home.
-- The variable with the id of this automation is true while the person is at home: use it in other automations.

--- @field person text: the name of the person
local person = "Anna"
--- @field home text: the hook that the phone calls when it comes home
local home = "anna_home"
--- @field away text: the hook that the phone calls when it leaves
local away = "anna_away"
--- @rule home ~= away: otherwise, one call would mean both

---@type Automation
return {
  id = "presence_by_hooks",
  name = "Presence by hooks",
  description = "Sets a variable when a phone reports that it comes home or leaves.",
  triggers = {
    { id = "home", type = "webhook", hook = home },
    { id = "away", type = "webhook", hook = away },
  },
  mode = "queued",
  execute = function(ctx, event)
    local is_home = event.trigger_id == "home"
    if ctx:get("presence_by_hooks") ~= is_home then
      ctx:set("presence_by_hooks", is_home, { durable = true })
      ctx:log("info", person .. (is_home and " is at home" or " has left"))
    end
  end,
}
