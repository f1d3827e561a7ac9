-- A Sonos player over its local interface: play, pause, volume. Each player needs a separate section.
--
--   [adapters.kitchen_music]
--   type = "sonos"
--   base_url = "http://192.168.1.110:1400"

local SERVICES = {
  AVTransport = { "/MediaRenderer/AVTransport/Control", "" },
  RenderingControl = { "/MediaRenderer/RenderingControl/Control", "<Channel>Master</Channel>" },
}
local ACTIONS = { play = "Play", pause = "Pause", stop = "Stop", next = "Next", previous = "Previous" }
local STATES = {
  PLAYING = "playing", PAUSED_PLAYBACK = "paused", STOPPED = "stopped", TRANSITIONING = "buffering", NO_MEDIA_PRESENT = "idle",
}
local MUTED = { ["0"] = false, ["1"] = true }
local REASONS = { ["701"] = "it has nothing to play, or is in that state already", ["800"] = "another player leads its group; command that one" }
local COMMANDS = { "media_playback", "volume", "muted" }

local ENVELOPE = '<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/" '
  .. 's:encodingStyle="http://schemas.xmlsoap.org/soap/encoding/">'

-- Call an action of UPnP. Return the answer, and its fields by name. If the answer has no fields, return nil instead of
-- the fields, followed by the UPnP error code.
local function call(ctx, service, action, inside)
  local path, channel = SERVICES[service][1], SERVICES[service][2]
  local name = "urn:schemas-upnp-org:service:" .. service .. ":1"
  local answer = ctx:http {
    method = "POST", path = path, headers = { SOAPACTION = '"' .. name .. "#" .. action .. '"', ["Content-Type"] = "text/xml; charset=utf-8" },
    body = ENVELOPE .. "<s:Body><u:" .. action .. ' xmlns:u="' .. name .. '"><InstanceID>0</InstanceID>' .. channel .. (inside or "")
      .. "</u:" .. action .. "></s:Body></s:Envelope>",
  }
  local body = answer.status == 200 and part(xml.decode(answer.body), "children", 1)
  local fields = part(body, "children", 1).children
  if not fields then return answer, nil, answer.body:match("<errorCode>%s*(%d+)%s*</errorCode>") end
  local found = {}
  for _, each in ipairs(fields) do found[each.name] = each.text end
  return answer, found
end

local AFTER = { play = "playing", pause = "paused", stop = "stopped" }

-- Return whether the player is in the expected state after an action.
local function is_in_state(ctx, action)
  local _, transport = call(ctx, "AVTransport", "GetTransportInfo")
  return AFTER[action] ~= nil and AFTER[action] == STATES[part(transport).CurrentTransportState]
end

local function refusal(action, answer, code)
  local reason = REASONS[code] or code and "error " .. code or "status " .. answer.status
  return (not code and answer.fault or "the player refuses " .. action) .. " (" .. reason .. ")"
end

-- Read an optional value. If the player refuses, the value is unknown. If the answer is unreadable, the value does
-- not change.
local function read(ctx, service, action, value_of)
  local answer, found = call(ctx, service, action)
  if found or answer.status ~= 200 then ctx.memory[action] = found and value_of(found) end
  return ctx.memory[action]
end

-- Return name and model. If the description is unreadable, read it again at the next poll.
local function about(ctx)
  if not ctx.memory.about then
    local answer = ctx:http { path = "/xml/device_description.xml" }
    local details = {}
    for _, device in ipairs(rows(answer.status == 200 and xml.decode(answer.body), "children")) do
      if device.name == "device" then
        for _, each in ipairs(device.children) do details[each.name] = each.text end
      end
    end
    if not next(details) then return {} end
    ctx.memory.about = { name = text(details.roomName, details.friendlyName), info = {
      manufacturer = "Sonos", model = details.modelName, firmware = details.softwareVersion, serial = details.serialNum } }
  end
  return ctx.memory.about
end

-- Return the title of the song. Some titles are missing or are not XML.
local function title_of(position)
  local data = position.TrackMetaData and xml.decode(position.TrackMetaData)
  for _, each in ipairs(rows(data, "children", 1, "children")) do
    if each.name == "title" then return text(each.text) end
  end
end

local function poll(ctx)
  local player = about(ctx)
  local answer, transport, code = call(ctx, "AVTransport", "GetTransportInfo")
  if not transport then
    local is_refused = code or answer.fault
    error(is_refused and refusal("GetTransportInfo", answer, code) or "the device at this address is not a Sonos (status " .. answer.status .. ")", 0)
  end
  local position = read(ctx, "AVTransport", "GetPositionInfo", function(found)
    ctx.memory.follows = (text(found.TrackURI) or ""):find("^x%-rincon:") ~= nil
    return { title = title_of(found) }
  end) or {}
  local playback, follows = STATES[transport.CurrentTransportState], ctx.memory.follows
  if follows or follows == nil and playback == "playing" then playback = nil end                 -- a follower always reports PLAYING
  return { { id = "player", kind = "Switch", class = "media_player", name = player.name, info = player.info, commands = COMMANDS, attributes = {
    media_playback = playback,
    volume = read(ctx, "RenderingControl", "GetVolume", function(found) return math.tointeger(tonumber(found.CurrentVolume)) end),
    muted = read(ctx, "RenderingControl", "GetMute", function(found) return MUTED[found.CurrentMute] end),
    media_title = position.title,
  } } }
end

local function command(ctx, device, asked)
  local service, action, inside = "AVTransport", ACTIONS[asked.action], asked.action == "play" and "<Speed>1</Speed>" or ""
  if asked.capability == "volume" then
    service, action, inside = "RenderingControl", "SetVolume", "<DesiredVolume>" .. asked.value .. "</DesiredVolume>"
  elseif asked.capability == "muted" then
    local muted = asked.action == "mute" or asked.action == "set" and asked.value
    service, action, inside = "RenderingControl", "SetMute", "<DesiredMute>" .. (muted and 1 or 0) .. "</DesiredMute>"
  end
  local answer, done, code = call(ctx, service, action, inside)
  if not done and (code or answer.status ~= 200) and not (code == "701" and is_in_state(ctx, asked.action)) then
    return nil, refusal(action, answer, code)
  end
end

return {
  name = "Sonos",
  settings = { base_url = { type = "string", required = true, description = 'its address with the port, like "http://192.168.1.110:1400"' } },
  poll_interval_secs = 5,
  poll = poll,
  command = command,
}
