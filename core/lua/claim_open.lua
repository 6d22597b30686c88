-- Takes what a counter holds for a claim, and leaves 0 in it with the TTL that it has.
-- KEYS[1]  counter
-- KEYS[2]  claim
-- ARGV[1]  TTL in milliseconds for a counter that has lost its own
-- ARGV[2]  how long an open claim is kept, in milliseconds
-- reply    {claim: 'open', 'committed' or 'aborted' and the amount, 'kept' or 'healed'}, or nil if there is nothing to claim
-- errors   WRONGTYPE, not an integer, OOM: raised before anything is changed
-- The same claim gets the same answer in each state, and a late copy of it takes nothing.
local claim = redis.call('GET', KEYS[2])
if claim then
  return {claim, 'kept'}
end
local amount = redis.call('GET', KEYS[1])
if not amount or amount == '0' then
  return false
end
-- Adding nothing changes nothing, but is refused unless the text is a whole number of 64 bits.
redis.call('INCRBY', KEYS[1], '0')
claim = 'open ' .. amount
local healed = redis.call('PTTL', KEYS[1]) == -1
redis.call('SET', KEYS[2], claim, 'PX', ARGV[2])
redis.call('SET', KEYS[1], '0', 'XX', 'KEEPTTL')
if healed then
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
  return {claim, 'healed'}
end
return {claim, 'kept'}
