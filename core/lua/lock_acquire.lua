-- Takes a lock, unless another token holds it, and counts its fence up.
-- KEYS[1]  lock
-- KEYS[2]  the last fence of this lock
-- ARGV[1]  token
-- ARGV[2]  TTL of the lock in milliseconds, checked by the caller
-- ARGV[3]  TTL of the fence in milliseconds
-- reply    {'granted', fence as text} or {'held', remaining milliseconds as text, -1 for ever}
-- errors   WRONGTYPE, not an integer, overflow, OOM: raised before anything is written
-- The same token finds its own lock, so that a caller whose reply was lost can ask again.
local time = redis.call('TIME')
local now = time[1] .. string.rep('0', 6 - #time[2]) .. time[2]
local fence = redis.call('GET', KEYS[2])
-- Compared as text, by length and then by digits: a Lua number would round them. A negative one is always behind.
local behind = not fence
  or (string.find(fence, '^%d+$') and (#fence < #now or (#fence == #now and fence < now)))
  or string.find(fence, '^%-%d+$')
-- As a rule the lock is free and the clock is ahead of the last fence. Nothing can fail then.
if behind and redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  redis.call('SET', KEYS[2], now, 'PX', ARGV[3])
  return {'granted', now}
end
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then
  return {'held', string.format('%d', redis.call('PTTL', KEYS[1]))}
end
if behind then
  fence = now
else
  -- Fails if it is not a number, and then nothing has happened.
  redis.call('INCRBY', KEYS[2], '1')
  fence = redis.call('GET', KEYS[2])
end
redis.call('SET', KEYS[2], fence, 'PX', ARGV[3])
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return {'granted', fence}
