-- Replaces a text and its TTL in one step, if the key is still there.
-- KEYS[1]  key
-- ARGV[1]  new text
-- ARGV[2]  TTL in milliseconds, checked by the caller
-- reply    'replaced' or 'absent'
-- errors   WRONGTYPE, OOM: nothing is changed
local kind = redis.call('TYPE', KEYS[1])['ok']
if kind == 'none' then
  return 'absent'
end
if kind ~= 'string' then
  return redis.error_reply('WRONGTYPE Operation against a key holding the wrong kind of value')
end
redis.call('SET', KEYS[1], ARGV[1], 'XX', 'PX', ARGV[2])
return 'replaced'
