-- Takes messages, and remembers who has them, in one step: none is ever held by nobody.
-- KEYS: unacked, unacked_index, taken, dead, then the lists in the order in which they are served
-- ARGV: how many, the time in seconds, the worker, and perhaps a message with its list that was
-- popped before this call
local limit, now, worker = tonumber(ARGV[1]), ARGV[2], ARGV[3]
local got = {}

local function text(value)
  if type(value) == 'string' then return value end
  return ''
end

local function hold(key, raw)
  local ok, message = pcall(cjson.decode, raw)
  local properties = ok and type(message) == 'table' and message.properties
  local tag = type(properties) == 'table' and properties.delivery_tag
  if type(tag) ~= 'string' or tag == '' then
    redis.call('XADD', KEYS[4], 'MAXLEN', '~', 10000, '*', 'queue', key, 'at', now,
      'why', 'it is not wrapped as Celery wraps messages', 'message', raw)
    got[#got + 1] = {key, '', raw}
    return
  end
  local info = type(properties.delivery_info) == 'table' and properties.delivery_info or {}
  local stored = '[' .. raw .. ',' .. cjson.encode(text(info.exchange)) .. ','
    .. cjson.encode(text(info.routing_key)) .. ']'
  redis.call('HSET', KEYS[1], tag, stored)
  redis.call('ZADD', KEYS[2], now, tag)
  redis.call('HSET', KEYS[3], tag, worker)
  got[#got + 1] = {key, tag, raw}
end

if ARGV[4] then hold(ARGV[4], ARGV[5]) end
for i = 5, #KEYS do
  while #got < limit do
    local raw = redis.call('RPOP', KEYS[i])
    if not raw then break end
    hold(KEYS[i], raw)
  end
end
return got
