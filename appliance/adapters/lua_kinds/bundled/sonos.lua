-- A Sonos player over its local interface: play, pause, volume. Each player is a section of its own.
--
--   [adapters.kitchen_music]
--   type = "sonos"
--   base_url = "http://192.168.1.110:1400"

local SERVICES = {
  AVTransport = { "/MediaRenderer/AVTransport/Control", "" },
  RenderingControl = { "/MediaRenderer/RenderingControl/Control", "<Channel>Master</Channel>" },
}
local ACTIONS = { play = "Play", pause = "Pause", stop = "Stop", next = "Next", previous = "Previous" }
local STATES = { PLAYING = "playing", PAUSED_PLAYBACK = "paused", STOPPED = "stopped", TRANSITIONING = "buffering" }

local REASONS = { ["701"] = "it has nothing to play, or is at that already", ["800"] = "another player leads its group; command that one" }

local COMMANDS = { "media_playback", "volume", "muted" }

local ENVELOPE = '<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/" '
  .. 's:encodingStyle="http://schemas.xmlsoap.org/soap/encoding/">'

-- One call of UPnP: the fields of the answer by name.
local function call(ctx, service, action, inside)
  local path, channel = SERVICES[service][1], SERVICES[service][2]
  local name = "urn:schemas-upnp-org:service:" .. service .. ":1"
  local answer = ctx:http {
    method = "POST", path = path, headers = { SOAPACTION = '"' .. name .. "#" .. action .. '"', ["Content-Type"] = "text/xml; charset=utf-8" },
    body = ENVELOPE .. "<s:Body><u:" .. action .. ' xmlns:u="' .. name .. '"><InstanceID>0</InstanceID>' .. channel .. (inside or "")
      .. "</u:" .. action .. "></s:Body></s:Envelope>",
  }
  local page = answer.status == 200 and xml.decode(answer.body)
  local body = page and page.children[1]
  if not body or not body.children[1] then
    local code = answer.body:match("<errorCode>(%d+)</errorCode>")
    return nil, "the player refuses " .. action .. " (" .. (REASONS[code] or "status " .. answer.status) .. ")", code
  end
  local found = {}
  for _, each in ipairs(body.children[1].children) do found[each.name] = each.text end
  return found
end

local function need(...)
  local found, fault = call(...)
  if not found then error(fault, 0) end
  return found
end

local function about(ctx)
  if not ctx.memory.about then
    local answer = ctx:http { path = "/xml/device_description.xml" }
    local page = answer.status == 200 and xml.decode(answer.body)
    if not page or page.name ~= "root" then error("what answers at this address is no Sonos", 0) end
    local told = {}
    for _, part in ipairs(page.children) do
      if part.name == "device" then
        for _, each in ipairs(part.children) do told[each.name] = each.text end
      end
    end
    ctx.memory.about = { name = told.roomName or told.friendlyName, info = {
      manufacturer = "Sonos", model = told.modelName, firmware = told.softwareVersion, serial = told.serialNum } }
  end
  return ctx.memory.about
end

local function poll(ctx)
  local player = about(ctx)
  local transport = need(ctx, "AVTransport", "GetTransportInfo")
  local volume = need(ctx, "RenderingControl", "GetVolume")
  local mute = need(ctx, "RenderingControl", "GetMute")
  local position, fault, code = call(ctx, "AVTransport", "GetPositionInfo")
  if not position and not code then error(fault, 0) end            -- a player may refuse this one, by a code of UPnP
  local data = position and position.TrackMetaData and xml.decode(position.TrackMetaData)
  local title
  for _, each in ipairs(data and data.children[1] and data.children[1].children or {}) do
    if each.name == "title" then title = each.text end
  end
  return { { id = "player", kind = "Switch", class = "media_player", name = player.name, info = player.info, commands = COMMANDS, attributes = {
    media_playback = STATES[transport.CurrentTransportState] or "idle", volume = math.tointeger(tonumber(volume.CurrentVolume)),
    muted = mute.CurrentMute == "1", media_title = title,
  } } }
end

local function command(ctx, device, asked)
  local _, fault
  if asked.capability == "volume" then
    _, fault = call(ctx, "RenderingControl", "SetVolume", "<DesiredVolume>" .. asked.value .. "</DesiredVolume>")
  elseif asked.capability == "muted" then
    local muted = asked.action == "mute" or asked.action == "set" and asked.value
    _, fault = call(ctx, "RenderingControl", "SetMute", "<DesiredMute>" .. (muted and 1 or 0) .. "</DesiredMute>")
  else
    _, fault = call(ctx, "AVTransport", ACTIONS[asked.action], asked.action == "play" and "<Speed>1</Speed>" or "")
  end
  if fault then return nil, fault end
end

return {
  name = "Sonos",
  settings = { base_url = { type = "string", required = true, description = 'its address with the port, like "http://192.168.1.110:1400"' } },
  poll_interval_secs = 5,
  poll = poll,
  command = command,
}
