-- Cuts a stream at the place of its slowest group, but keeps some for whoever comes later, and cuts
-- it at its greatest length whoever has not read it. A group from which nobody has ever read does
-- not hold anything up.
-- KEYS: the stream
-- ARGV: how many are kept in any case, how many at most, how many are cut at a time
-- gives: how many were cut that a group had not read, and the name of that group
local least, most, step = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])

local function id(text)
  local ms, seq = string.match(text, '^(%d+)%-(%d+)$')
  return tonumber(ms), tonumber(seq)
end
local function before(a, b)
  local a_ms, a_seq = id(a)
  local b_ms, b_seq = id(b)
  return a_ms < b_ms or (a_ms == b_ms and a_seq < b_seq)
end

-- The first entry that some group still needs is behind this one.
local slowest, name = nil, ''
for _, flat in ipairs(redis.call('XINFO', 'GROUPS', KEYS[1])) do
  local group = {}
  for i = 1, #flat, 2 do group[flat[i]] = flat[i + 1] end
  local place = group['last-delivered-id']
  if group['pending'] > 0 then
    local first = redis.call('XPENDING', KEYS[1], group['name'])[2]
    if first and before(first, place) then
      -- It is needed itself: the place is just before it.
      local ms, seq = string.match(first, '^(%d+)%-(%d+)$')
      if tonumber(seq) > 0 then
        place = ms .. '-' .. string.format('%.0f', tonumber(seq) - 1)
      else
        place = string.format('%.0f', tonumber(ms) - 1) .. '-18446744073709551615'
      end
    end
  end
  if place ~= '0-0' or group['consumers'] > 0 then
    if not slowest or before(place, slowest) then slowest, name = place, group['name'] end
  end
end

-- Not all at once: whatever else Redis does waits for a script.
local length, unread = redis.call('XLEN', KEYS[1]), 0
for _ = 1, 20 do
  if length <= least then break end
  local oldest = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', math.min(step, length - least))
  local cut = 0
  for _, entry in ipairs(oldest) do
    if slowest and before(slowest, entry[1]) then
      if length - cut <= most then break end
      unread = unread + 1
    end
    cut = cut + 1
  end
  if cut == 0 then break end
  redis.call('XTRIM', KEYS[1], 'MAXLEN', length - cut)
  length = length - cut
end
return { unread, name }
