-- A worker is about to start a launch: only if it may still be started, and only with a lease.
-- KEYS: the node, launches, claims
-- ARGV: generation, id
local generation = redis.call('HGET', KEYS[1], 'generation')
if generation ~= ARGV[1] or redis.call('HEXISTS', KEYS[1], 'lost') == 1 then return {'lost'} end
local launch = redis.call('HGET', KEYS[2], ARGV[2])
if not launch then return {'over'} end
redis.call('HSET', KEYS[3], ARGV[2], ARGV[1])
return {'run', launch}
