-- A worker begins to serve its node. Refused while another one does.
-- KEYS: the node, the nodes, the worker's sign of life
-- ARGV: name, generation, the node's description, lease in ms
local holder = redis.call('GET', KEYS[3])
if holder and holder ~= ARGV[2] then return 0 end
redis.call('SET', KEYS[3], ARGV[2], 'PX', ARGV[4])
redis.call('HSET', KEYS[1], 'generation', ARGV[2], 'found', ARGV[3], 'lease', ARGV[4])
redis.call('HINCRBY', KEYS[1], 'beat', 1)
redis.call('HDEL', KEYS[1], 'lost')
redis.call('SADD', KEYS[2], ARGV[1])
return 1
