-- Writes a text and its TTL in one step, unless a higher fence was seen here.
-- KEYS[1]  key
-- KEYS[2]  guard of the key
-- ARGV[1]  text
-- ARGV[2]  TTL in milliseconds, checked by the caller
-- ARGV[3]  fence
-- ARGV[4]  TTL of the guard in milliseconds
-- reply    'set', or {the higher fence that was seen here, 'fenced_off'}
-- errors   WRONGTYPE, OOM: raised before anything is changed
local kind = redis.call('TYPE', KEYS[1])['ok']
if kind ~= 'none' and kind ~= 'string' then
  return redis.error_reply('WRONGTYPE Operation against a key holding the wrong kind of value')
end
local fence = ARGV[3]
local highest = redis.call('GET', KEYS[2])
-- Compared as text, by length and then by digits: a Lua number would round them.
if highest and (#highest > #fence or (#highest == #fence and highest > fence)) then
  return {highest, 'fenced_off'}
end
redis.call('SET', KEYS[2], fence, 'PX', ARGV[4])
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 'set'
