-- Carries out commands in one step, unless a key is not what it was when they were thought of.
-- KEYS: perhaps the key that is looked at
-- ARGV: what it should be ('' for nothing), then of each command how many words, and the words
if KEYS[1] and (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then return 0 end
local i = 2
while i < #ARGV do
  local last = i + tonumber(ARGV[i])
  redis.call(unpack(ARGV, i + 1, last))
  i = last + 1
end
return 1
