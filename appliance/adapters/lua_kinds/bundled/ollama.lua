-- A language model on your own machine, with Ollama. This kind has no devices, only operations for scenes and automations:
--
--   local answer = ctx:invoke("ollama:chat", { prompt = "Is it going to rain?" })
--   ctx:log("info", answer.message.content)
--
--   [adapters.ollama]
--   base_url = "http://192.168.1.80:11434"
--   model = "llama3.2"

-- Return the answer of Ollama. If the answer lacks the field, return nil and a message.
local function call(ctx, path, field, body)
  local answer = ctx:http { method = body and "POST" or "GET", path = path, json = body }
  local found = answer.json
  if answer.status ~= 200 or type(found) ~= "table" or found[field] == nil then
    local reason = type(found) == "table" and type(found.error) == "string" and found.error:sub(1, 300)
    return nil, "Ollama answers: " .. (reason or "status " .. answer.status .. " without " .. field)
  end
  return found
end

-- Takes the payload of /api/chat. `prompt` is a short form for one message of the user.
local function chat(ctx, payload)
  local messages = payload.messages
  if type(messages) ~= "table" then
    if type(payload.prompt) ~= "string" then return nil, "chat needs a prompt, or messages" end
    messages = { { role = "user", content = payload.prompt } }
  end
  return call(ctx, "/api/chat", "message", {
    model = payload.model or ctx.settings.model, messages = messages, format = payload.format, options = payload.options,
    tools = payload.tools, keep_alive = payload.keep_alive, think = payload.think, stream = false,
  })
end

local function generate(ctx, payload)
  if type(payload.prompt) ~= "string" then return nil, "generate needs a prompt" end
  return call(ctx, "/api/generate", "response", {
    model = payload.model or ctx.settings.model, prompt = payload.prompt, system = payload.system, format = payload.format,
    options = payload.options, keep_alive = payload.keep_alive, stream = false,
  })
end

return {
  name = "Ollama",
  base_url = "http://127.0.0.1:11434",
  poll_interval_secs = 300,
  settings = { model = { type = "string", default = "llama3.2", description = "the model for calls without a model" } },
  poll = function(ctx)         -- only checks that Ollama answers
    local found, fault = call(ctx, "/api/tags", "models")
    if not found then error(fault, 0) end
  end,
  operations = {
    chat = { timeout_secs = 300, run = chat },           -- the first call loads the model: minutes on a small box
    generate = { timeout_secs = 300, run = generate },
    models = function(ctx) return call(ctx, "/api/tags", "models") end,
  },
}
