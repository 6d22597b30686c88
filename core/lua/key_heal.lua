-- Gives a key of any type a TTL, if it has none.
-- KEYS[1]  key
-- ARGV[1]  TTL in milliseconds, checked by the caller
-- reply    'healed' or 'kept'; 'kept' too if there is no such key
-- errors   none
if redis.call('PTTL', KEYS[1]) ~= -1 then
  return 'kept'
end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 'healed'
