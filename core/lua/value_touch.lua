-- Sets the TTL of a text, if the key is still there.
-- KEYS[1]  key
-- ARGV[1]  TTL in milliseconds, checked by the caller
-- reply    'touched' or 'absent'
-- errors   WRONGTYPE: nothing is changed
local kind = redis.call('TYPE', KEYS[1])['ok']
if kind == 'none' then
  return 'absent'
end
if kind ~= 'string' then
  return redis.error_reply('WRONGTYPE Operation against a key holding the wrong kind of value')
end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 'touched'
