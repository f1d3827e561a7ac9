-- Who is at home: a FRITZ!Box knows which phones are in its network.
--
--   [adapters.fritzbox]
--   base_url = "http://fritz.box:49000"
--   username = "lares"
--   password_file = "config/fritzbox-password"
--   people = ["Anna=AA:BB:CC:DD:EE:FF", "Ben=11:22:33:44:55:66"]
--   auth = "digest"
--
-- In the box: Home Network > Network > Network Settings > allow access for applications; the user needs the right to see
-- its settings. On the phone, switch the private WLAN address off for the home's network.

local NAME = "urn:dslforum-org:service:Hosts:1"

-- Whether the host of this address is active; nil where the box does not know it.
local function is_active(ctx, address)
  local answer = ctx:http {
    method = "POST", path = "/upnp/control/hosts",
    headers = { SOAPACTION = NAME .. "#GetSpecificHostEntry", ["Content-Type"] = 'text/xml; charset="utf-8"' },
    body = '<?xml version="1.0"?><s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/" s:encodingStyle='
      .. '"http://schemas.xmlsoap.org/soap/encoding/"><s:Body><u:GetSpecificHostEntry xmlns:u="' .. NAME .. '"><NewMACAddress>'
      .. address .. "</NewMACAddress></u:GetSpecificHostEntry></s:Body></s:Envelope>",
  }
  if answer.status == 401 then error('the box refuses user and password; its section needs auth = "digest"', 0) end
  local active = answer.body:match("<NewActive>(%d)</NewActive>")
  if answer.status == 500 and answer.body:find("UPnPError", 1, true) then return nil end     -- 714: no such host
  if answer.status ~= 200 or not active then error("what answers at this address is no FRITZ!Box (status " .. answer.status .. ")", 0) end
  return active == "1"
end

-- Letters that are not of ASCII become their bytes, so that Jörg and Jürg stay two.
local function id_of(name)
  local text = name:lower():gsub("[\128-\255]", function(byte) return string.format("%02x", byte:byte()) end)
  return (text:gsub("[^%w]", "_"))
end

-- A phone sleeps and is not seen for some minutes, though it is there; so somebody is away only after a while. Who was at
-- home before a restart is so for that while too.
local function poll(ctx)
  local found, now, home = {}, ctx:now(), {}
  local before = not ctx.memory.has_polled and ctx:kept("home") or ""
  ctx.memory.has_polled = true
  for _, each in ipairs(ctx.settings.people) do
    local name, address = tostring(each):match("^%s*(.-)%s*=%s*(%x%x:%x%x:%x%x:%x%x:%x%x:%x%x)%s*$")
    if not name then error('people must be written as "Anna=AA:BB:CC:DD:EE:FF", not ' .. tostring(each), 0) end
    address = address:upper()
    local active = is_active(ctx, address)
    if active or before:find(address, 1, true) then ctx.memory[address] = now end
    local seen = ctx.memory[address]
    local is_home = active or seen ~= nil and now - seen < ctx.settings.away_after
    if is_home then home[#home + 1] = address end
    found[#found + 1] = { id = id_of(name), kind = "Sensor", class = "person", name = name, attributes = { presence = is_home } }
  end
  ctx:keep("home", table.concat(home, " "))             -- written only where it has changed
  return found
end

return {
  name = "FRITZ!Box",
  base_url = "http://fritz.box:49000",
  poll_interval_secs = 30,
  settings = {
    people = { type = "list", required = true, description = 'whose phones they are, like ["Anna=AA:BB:CC:DD:EE:FF"]' },
    away_after = { type = "duration", default = "5m", description = "how long a phone may be unseen before somebody is away" },
  },
  poll = poll,
}
