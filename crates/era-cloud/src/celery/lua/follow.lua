-- Sends what follows a task, once however often it is asked for.
-- KEYS: what remembers it, then the lists
-- ARGV: how long it is remembered, then a message for each list
if not redis.call('SET', KEYS[1], 1, 'NX', 'EX', ARGV[1]) then return 0 end
for i = 2, #KEYS do redis.call('LPUSH', KEYS[i], ARGV[i]) end
return 1
