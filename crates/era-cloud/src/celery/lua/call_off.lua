-- Calls a launch off that no worker has claimed.
-- KEYS: claims, launches
-- ARGV: id
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then return 0 end
redis.call('HDEL', KEYS[2], ARGV[1])
return 1
