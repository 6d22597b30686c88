-- Replaces a text and its TTL in one step, if it is still what the caller saw.
-- KEYS[1]  key
-- ARGV[1]  expected text
-- ARGV[2]  new text
-- ARGV[3]  TTL in milliseconds, checked by the caller
-- reply    'set', 'different' or 'absent'
-- errors   WRONGTYPE, OOM: nothing is changed
local found = redis.call('GET', KEYS[1])
if not found then
  return 'absent'
end
if found ~= ARGV[1] then
  return 'different'
end
redis.call('SET', KEYS[1], ARGV[2], 'XX', 'PX', ARGV[3])
return 'set'
