-- A worker is still there: its tasks may go on for another lease.
-- KEYS: the node, the worker's sign of life
-- ARGV: generation, lease in ms
local generation = redis.call('HGET', KEYS[1], 'generation')
if not generation then return 'unknown' end
if generation ~= ARGV[1] or redis.call('HEXISTS', KEYS[1], 'lost') == 1 then return 'lost' end
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])
redis.call('HSET', KEYS[1], 'lease', ARGV[2])
redis.call('HINCRBY', KEYS[1], 'beat', 1)
return 'ok'
