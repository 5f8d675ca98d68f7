-- Carries out commands in one step, unless a newer leader has written before, or a key is not what
-- it was when the commands were thought of.
-- KEYS: the fence, the key that is looked at
-- ARGV: who writes, whose place that one may take, what the key should be ('' for nothing),
--       the commands as JSON
local fence = redis.call('GET', KEYS[1])
if fence and fence ~= ARGV[1] and fence ~= ARGV[2] then
  local theirs = tonumber(string.match(fence, '^%d+')) or 0
  if theirs >= tonumber(string.match(ARGV[1], '^%d+')) then return fence end
end
if KEYS[2] and (redis.call('GET', KEYS[2]) or '') ~= ARGV[3] then return 'moved' end
redis.call('SET', KEYS[1], ARGV[1])
for _, words in ipairs(cjson.decode(ARGV[4])) do redis.call(unpack(words)) end
return 'done'
