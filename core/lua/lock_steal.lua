-- Deletes a lock, if it is still held by this token, counts its fence up, and tells those who wait.
-- KEYS[1]  lock
-- KEYS[2]  the last fence of this lock
-- ARGV[1]  token that must hold it
-- ARGV[2]  channel on which the release is told
-- ARGV[3]  TTL of the fence in milliseconds; a fence that has longer keeps that
-- reply    {'stolen', fence as text}, 'absent' or 'taken'
-- errors   WRONGTYPE, not an integer, overflow, OOM: raised before anything is written
local holder = redis.call('GET', KEYS[1])
if not holder then
  return 'absent'
end
if holder ~= ARGV[1] then
  return 'taken'
end
local time = redis.call('TIME')
local now = time[1] .. string.rep('0', 6 - #time[2]) .. time[2]
local fence = redis.call('GET', KEYS[2])
-- As lock_acquire.lua does it.
local behind = not fence
  or (string.find(fence, '^%d+$') and (#fence < #now or (#fence == #now and fence < now)))
  or string.find(fence, '^%-%d+$')
local left = redis.call('PTTL', KEYS[2])
if behind then
  fence = now
else
  -- Fails if it is not a number, and then nothing has happened.
  redis.call('INCRBY', KEYS[2], '1')
  fence = redis.call('GET', KEYS[2])
end
local ttl = ARGV[3]
if left > tonumber(ttl) then
  ttl = string.format('%d', left)
end
redis.call('SET', KEYS[2], fence, 'PX', ttl)
redis.call('DEL', KEYS[1])
-- Best effort: an account without channels may steal all the same.
redis.pcall('PUBLISH', ARGV[2], 'released')
return {'stolen', fence}
