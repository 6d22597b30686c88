-- Adds to a counter and sets its TTL in the same step.
-- KEYS[1]  counter
-- ARGV[1]  amount, a whole number of 64 bits
-- ARGV[2]  TTL in milliseconds, checked by the caller
-- ARGV[3]  'sliding': set the TTL now; 'fixed': only if there is none
-- reply    the total, as text: a Lua number would round it
-- errors   WRONGTYPE, not an integer, overflow, OOM: raised before anything is written
-- A new counter is written together with its TTL: whatever may fail afterwards, there is never one without.
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  return ARGV[1]
end
redis.call('INCRBY', KEYS[1], ARGV[1])
if ARGV[3] == 'sliding' or redis.call('PTTL', KEYS[1]) == -1 then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return redis.call('GET', KEYS[1])
