-- Writes down a fence that other nodes have given for a lock, if it is held by this token and no higher one is there.
-- KEYS[1]  lock
-- KEYS[2]  the last fence of this lock
-- ARGV[1]  token
-- ARGV[2]  fence as text
-- ARGV[3]  TTL of the fence in milliseconds, as at the acquire
-- reply    'raised', 'absent', 'taken' or {'higher', the last fence as text}
-- errors   WRONGTYPE, not an integer, OOM: nothing is changed
local holder = redis.call('GET', KEYS[1])
if not holder then
  return 'absent'
end
if holder ~= ARGV[1] then
  return 'taken'
end
local last = redis.call('GET', KEYS[2])
if last and not string.find(last, '^%-?%d+$') then
  return redis.error_reply('ERR value is not an integer or out of range')
end
-- Compared as text, by length and then by digits: a Lua number would round them. A negative one is always behind.
if last and string.find(last, '^%d') and (#last > #ARGV[2] or (#last == #ARGV[2] and last > ARGV[2])) then
  return {'higher', last}
end
redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3])
return 'raised'
