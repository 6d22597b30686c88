-- Takes what a counter holds and leaves 0 in it, with the TTL that it has.
-- KEYS[1]  counter
-- ARGV[1]  TTL in milliseconds for a counter that has lost its own
-- reply    {amount as text, 'kept' or 'healed'}, or nil if there is no counter
-- errors   WRONGTYPE, not an integer, OOM: raised by GET and INCRBY, before anything is changed
local amount = redis.call('GET', KEYS[1])
if not amount then
  return false
end
-- Adding nothing changes nothing, but is refused unless the text is a whole number of 64 bits.
redis.call('INCRBY', KEYS[1], '0')
local healed = redis.call('PTTL', KEYS[1]) == -1
-- KEEPTTL on a key that is not there would make one without a TTL, hence XX.
redis.call('SET', KEYS[1], '0', 'XX', 'KEEPTTL')
if healed then
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
  return {amount, 'healed'}
end
return {amount, 'kept'}
