-- A part of a chord has returned. Parts are counted once each; whoever brings the last one is to
-- call the body, and nobody else while its claim holds.
-- KEYS: results by place, a difference to the size, the size, who was counted, who calls the body
-- ARGV: the part, its result, its place, how long all of it is kept, a token, how long it holds
-- Says 0: nothing is due; 1: the body is due, and ours to call; 2: somebody else is calling it.
local results, difference, size, counted, calls = unpack(KEYS)
if redis.call('GET', calls) == 'done' then return 0 end
if redis.call('SADD', counted, ARGV[1]) == 1 then redis.call('ZADD', results, ARGV[3], ARGV[2]) end
for i = 1, 4 do redis.call('EXPIRE', KEYS[i], ARGV[4]) end
local wanted = redis.call('GET', size)
if not wanted then return 0 end
wanted = tonumber(wanted) + tonumber(redis.call('GET', difference) or 0)
if redis.call('ZCARD', results) ~= wanted then return 0 end
local holder = redis.call('GET', calls)
if holder and holder ~= ARGV[5] then return 2 end
redis.call('SET', calls, ARGV[5], 'EX', ARGV[6])
return 1
