-- Takes what a counter holds for a claim, and leaves 0 in it with the TTL that it has.
-- KEYS[1]  counter
-- KEYS[2]  claim
-- KEYS[3]  guard of the counter, if the claim carries a fence
-- ARGV[1]  TTL in milliseconds for a counter that has lost its own
-- ARGV[2]  how long an open claim is kept, in milliseconds
-- ARGV[3]  fence, if any
-- ARGV[4]  TTL of the guard in milliseconds, if any
-- reply    {claim: 'open', 'committed' or 'aborted' and the amount, 'kept' or 'healed'}, nil if there is nothing to
--          claim, or {the higher fence that was seen here, 'fenced_off'}
-- errors   WRONGTYPE, not an integer, OOM: raised before anything is changed
-- The same claim gets the same answer in each state, and a late copy of it takes nothing.
local claim = redis.call('GET', KEYS[2])
local amount = redis.call('GET', KEYS[1])
local fence = ARGV[3]
if fence then
  local highest = redis.call('GET', KEYS[3])
  -- Compared as text, by length and then by digits: a Lua number would round them.
  if highest and (#highest > #fence or (#highest == #fence and highest > fence)) then
    return {highest, 'fenced_off'}
  end
end
local takes = not claim and amount and amount ~= '0'
if takes then
  -- Adding nothing changes nothing, but is refused unless the text is a whole number of 64 bits.
  redis.call('INCRBY', KEYS[1], '0')
end
if fence then
  redis.call('SET', KEYS[3], fence, 'PX', ARGV[4])
end
if claim then
  return {claim, 'kept'}
end
if not takes then
  return false
end
claim = 'open ' .. amount
local healed = redis.call('PTTL', KEYS[1]) == -1
redis.call('SET', KEYS[2], claim, 'PX', ARGV[2])
redis.call('SET', KEYS[1], '0', 'XX', 'KEEPTTL')
if healed then
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
  return {claim, 'healed'}
end
return {claim, 'kept'}
