-- Presence of people: a FRITZ!Box knows which phones are in its network.
--
--   [adapters.fritzbox]
--   base_url = "http://fritz.box:49000"
--   username = "lares"
--   password_file = "config/fritzbox-password"
--   people = ["Anna=AA:BB:CC:DD:EE:FF", "Ben=11:22:33:44:55:66"]
--   auth = "digest"
--
-- In the FRITZ!Box, allow access for applications: Home Network > Network > Network Settings. The user needs the right to
-- see the settings of the box. On the phone, switch off the private WLAN address for the home network.

local NAME = "urn:dslforum-org:service:Hosts:1"

local UNKNOWN_HOST = "714"
local REMEDIES = {
  ["402"] = "check the address of the phone in people",
  ["606"] = "give the user the right to see the settings of the box",
}

-- Raise an error of the box. Only code 714 means that the box does not know the phone. For any other code, the state
-- of the phone is unknown, so the poll fails and the presence does not change.
local function check_fault(answer)
  local code = answer.body:match("<errorCode>%s*(%d+)%s*</errorCode>")
  if code == UNKNOWN_HOST then return end
  local reason = REMEDIES[code] or text(answer.body:match("<errorDescription>([^<]*)</errorDescription>")) or "status " .. answer.status
  error("the box answers error " .. (code or "without a code") .. ": " .. reason:sub(1, 200), 0)
end

-- Return whether the host with this address is active. Return false if the box does not know the host.
local function is_active(ctx, address)
  local answer = ctx:http {
    method = "POST", path = "/upnp/control/hosts",
    headers = { SOAPACTION = NAME .. "#GetSpecificHostEntry", ["Content-Type"] = 'text/xml; charset="utf-8"' },
    body = '<?xml version="1.0"?><s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/" s:encodingStyle='
      .. '"http://schemas.xmlsoap.org/soap/encoding/"><s:Body><u:GetSpecificHostEntry xmlns:u="' .. NAME .. '"><NewMACAddress>'
      .. address .. "</NewMACAddress></u:GetSpecificHostEntry></s:Body></s:Envelope>",
  }
  if answer.status == 401 then error('the box rejects username and password; set auth = "digest" in the section', 0) end
  local active = answer.body:match("<NewActive>(%d)</NewActive>")
  if answer.status == 500 and answer.body:find("UPnPError", 1, true) then check_fault(answer) return false end
  if answer.status ~= 200 or active ~= "0" and active ~= "1" then
    error((answer.fault or "the device at this address is not a FRITZ!Box") .. " (status " .. answer.status .. ")", 0)
  end
  return active == "1"
end

-- Encode letters outside of ASCII as bytes, so that Jörg and Jürg have different ids.
local function id_of(name)
  local text = name:lower():gsub("[\128-\255]", function(byte) return string.format("%02x", byte:byte()) end)
  return (text:gsub("[^%w]", "_"))
end

-- A sleeping phone is invisible for some minutes, so a person is away only once the time away_after has passed. After
-- a restart or an outage, away_after starts again for each person at home, because nothing is known about the period
-- in which the box did not answer.
local function poll(ctx)
  local found, now, home = {}, ctx:now(), {}
  local before = not ctx.memory.polled_at and ctx:kept("home") or ""
  local outage = now - (ctx.memory.polled_at or now)
  if outage < 3 * ctx.settings.poll_interval_secs then outage = 0 end
  for _, each in ipairs(ctx.settings.people) do
    local name, address = tostring(each):match("^%s*(.-)%s*=%s*(%x%x:%x%x:%x%x:%x%x:%x%x:%x%x)%s*$")
    if not name then error('people must be written as "Anna=AA:BB:CC:DD:EE:FF", not ' .. tostring(each), 0) end
    address = address:upper()
    local active = is_active(ctx, address)
    if active or before:find(address, 1, true) then ctx.memory[address] = now
    elseif ctx.memory[address] then ctx.memory[address] = ctx.memory[address] + outage
    end
    local seen = ctx.memory[address]
    local is_home = active or seen ~= nil and now - seen < ctx.settings.away_after
    if is_home then home[#home + 1] = address end
    found[#found + 1] = { id = id_of(name), kind = "Sensor", class = "person", name = name, attributes = { presence = is_home } }
  end
  ctx.memory.polled_at = now
  ctx:keep("home", table.concat(home, " "))             -- the text is written only if it has changed
  return found
end

return {
  name = "FRITZ!Box",
  base_url = "http://fritz.box:49000",
  poll_interval_secs = 30,
  settings = {
    people = { type = "list", required = true, description = 'name and address of each phone, like ["Anna=AA:BB:CC:DD:EE:FF"]' },
    username = { type = "string", description = "a user of the box who may see its settings" },
    away_after = { type = "duration", default = "5m", description = "time without the phone until a person counts as away" },
  },
  poll = poll,
}
