-- A worker is about to start a launch: only if it may still be started, and only with a lease.
-- KEYS: the node, launches, claims, the launch's result
-- ARGV: generation, id, then the states that nothing follows
local generation = redis.call('HGET', KEYS[1], 'generation')
if generation ~= ARGV[1] or redis.call('HEXISTS', KEYS[1], 'lost') == 1 then return {'lost'} end
local launch = redis.call('HGET', KEYS[2], ARGV[2])
if not launch then return {'over'} end
-- It stays among the launches until the server has written its end down.
local ok, result = pcall(cjson.decode, redis.call('GET', KEYS[4]) or '{}')
if ok and type(result) == 'table' then
  for i = 3, #ARGV do
    if result.status == ARGV[i] then return {'over'} end
  end
end
redis.call('HSET', KEYS[3], ARGV[2], ARGV[1])
return {'run', launch}
