-- A node was not heard of for longer than a lease: nothing of it may start or go on any more.
-- KEYS: the node, the nodes, launches, claims
-- ARGV: name, the beat that was last seen, then the ids of its launches
local beat = redis.call('HGET', KEYS[1], 'beat')
if beat and beat ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], 'lost', 1)
redis.call('SREM', KEYS[2], ARGV[1])
for i = 3, #ARGV do
  redis.call('HDEL', KEYS[3], ARGV[i])
  redis.call('HDEL', KEYS[4], ARGV[i])
end
return 1
