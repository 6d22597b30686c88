-- Adds to a counter once for an idempotency key, and sets the counter's TTL in the same step.
-- KEYS[1]  counter
-- KEYS[2]  what was added under this idempotency key
-- ARGV[1]  amount, a whole number of 64 bits
-- ARGV[2]  TTL of the counter in milliseconds, checked by the caller
-- ARGV[3]  'sliding': set the TTL now; 'fixed': only if there is none
-- ARGV[4]  how long the idempotency key is remembered, in milliseconds
-- reply    {'added', total as text}, {'repeated', total as text, nil if the counter is gone},
--          or {'conflict', the amount that was added under this key}
-- errors   WRONGTYPE, not an integer, overflow, OOM: raised before anything is written
local added = redis.call('GET', KEYS[2])
if added then
  if added ~= ARGV[1] then
    return {'conflict', added}
  end
  return {'repeated', redis.call('GET', KEYS[1])}
end
-- A new counter is written together with its TTL.
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[4])
  return {'added', ARGV[1]}
end
redis.call('INCRBY', KEYS[1], ARGV[1])
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[4])
if ARGV[3] == 'sliding' or redis.call('PTTL', KEYS[1]) == -1 then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return {'added', redis.call('GET', KEYS[1])}
