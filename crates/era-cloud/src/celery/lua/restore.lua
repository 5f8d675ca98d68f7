-- Puts a message back, if it is still held as it was when it was looked at.
-- KEYS: unacked, unacked_index, taken, the list
-- ARGV: the tag, what is held, what is put back
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
redis.call('HDEL', KEYS[1], ARGV[1])
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('HDEL', KEYS[3], ARGV[1])
redis.call('RPUSH', KEYS[4], ARGV[3])
return 1
