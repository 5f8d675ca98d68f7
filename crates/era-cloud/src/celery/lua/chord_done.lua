-- A chord is over: what follows is sent and kept, and its counters go, in one step, if it is still
-- ours to end.
-- KEYS: as of chord_part.lua, then the lists of messages, then the keys of sizes and results
-- ARGV: the token, how long the end is remembered, how long results are kept, how many messages,
-- then messages and results in the order of their keys
local results, difference, size, counted, calls = unpack(KEYS)
local holder = redis.call('GET', calls)
if holder and holder ~= ARGV[1] then return 0 end
if redis.call('EXISTS', size) == 0 then return 0 end
redis.call('DEL', results, difference, size, counted)
redis.call('SET', calls, 'done', 'EX', ARGV[2])
local messages = tonumber(ARGV[4])
for i = 6, #KEYS do
  local text = ARGV[i - 1]
  if i - 5 <= messages then
    redis.call('LPUSH', KEYS[i], text)
  else
    redis.call('SETEX', KEYS[i], ARGV[3], text)
    redis.call('PUBLISH', KEYS[i], text)
  end
end
return 1
