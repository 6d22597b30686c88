-- Tells who holds a lock, and changes nothing.
-- KEYS[1]  lock
-- KEYS[2]  the last fence of this lock
-- reply    {'holder', token, remaining milliseconds as text, -1 for ever, the last fence, '' for none},
--          or nil if nobody holds it
-- errors   WRONGTYPE of the lock; a fence of another type is none
local holder = redis.call('GET', KEYS[1])
if not holder then
  return false
end
local fence = ''
if redis.call('TYPE', KEYS[2])['ok'] == 'string' then
  fence = redis.call('GET', KEYS[2])
end
return {'holder', holder, string.format('%d', redis.call('PTTL', KEYS[1])), fence}
