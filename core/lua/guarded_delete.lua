-- Deletes a text, unless a higher fence was seen here. The guard stays.
-- KEYS[1]  key
-- KEYS[2]  guard of the key
-- ARGV[1]  fence
-- ARGV[2]  TTL of the guard in milliseconds
-- reply    'deleted' or 'absent', or {the higher fence that was seen here, 'fenced_off'}
-- errors   WRONGTYPE, OOM if there is nothing to delete: raised before anything is changed
local kind = redis.call('TYPE', KEYS[1])['ok']
if kind ~= 'none' and kind ~= 'string' then
  return redis.error_reply('WRONGTYPE Operation against a key holding the wrong kind of value')
end
local fence = ARGV[1]
local highest = redis.call('GET', KEYS[2])
-- Compared as text, by length and then by digits: a Lua number would round them.
if highest and (#highest > #fence or (#highest == #fence and highest > fence)) then
  return {highest, 'fenced_off'}
end
-- Deleting comes first: after it the guard is written by a server that is out of memory too.
if kind == 'string' then
  redis.call('DEL', KEYS[1])
end
redis.call('SET', KEYS[2], fence, 'PX', ARGV[2])
return kind == 'string' and 'deleted' or 'absent'
