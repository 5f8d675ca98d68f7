-- Sends what follows a task, once however often it is asked for.
-- KEYS: what remembers it, then the lists, then the sizes of chords among them
-- ARGV: how long it is remembered, how long sizes are kept, how many messages, then a message for
-- each list and a number for each size
if not redis.call('SET', KEYS[1], 1, 'NX', 'EX', ARGV[1]) then return 0 end
local messages = tonumber(ARGV[3])
for i = 2, #KEYS do
  if i - 1 <= messages then
    redis.call('LPUSH', KEYS[i], ARGV[i + 2])
  else
    redis.call('SETEX', KEYS[i], ARGV[2], ARGV[i + 2])
  end
end
return 1
