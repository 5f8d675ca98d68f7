-- Makes a server the one that writes, if nobody else became that since it looked.
-- KEYS: the fence
-- ARGV: the server, who was there ('' for nobody)
if (redis.call('GET', KEYS[1]) or '') == ARGV[2] then redis.call('SET', KEYS[1], ARGV[1]) end
