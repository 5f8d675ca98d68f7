-- Stands before scripts that write on a site's behalf: nothing is done unless the caller is named.
-- KEYS: those of the script, then the fence
-- ARGV: those of the script, then who calls
do
  local holder = redis.call('GET', table.remove(KEYS))
  if holder ~= table.remove(ARGV) then
    return redis.error_reply('FENCED ' .. (holder or 'nobody') .. ' writes here')
  end
end
