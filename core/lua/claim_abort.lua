-- Ends a claim as not billed, and gives what it took back to the counter.
-- KEYS[1]  counter
-- KEYS[2]  claim
-- KEYS[3]  guard of the counter, if the end carries a fence
-- ARGV[1]  TTL in milliseconds for a counter that is gone or has lost its own
-- ARGV[2]  how long an ended claim is kept, in milliseconds
-- ARGV[3]  fence, if any
-- ARGV[4]  TTL of the guard, if any: not used, since it is only looked at
-- reply    the claim as it was found: 'open', 'committed' or 'aborted' and its amount; or nil if there is none.
--          It was ended if it was open. Or {the higher fence that was seen here, 'fenced_off'}, and it stays open.
-- errors   WRONGTYPE, not an integer, overflow, OOM: raised before anything is changed; the claim stays open
local claim = redis.call('GET', KEYS[2])
local amount = claim and string.match(claim, '^open (%-?%d+)$')
if not amount then
  return claim
end
local fence = ARGV[3]
if fence then
  local highest = redis.call('GET', KEYS[3])
  -- Compared as text, by length and then by digits: a Lua number would round them.
  if highest and (#highest > #fence or (#highest == #fence and highest > fence)) then
    return {highest, 'fenced_off'}
  end
end
-- A counter that is gone is written again together with its TTL.
local lost = false
if not redis.call('SET', KEYS[1], amount, 'NX', 'PX', ARGV[1]) then
  redis.call('INCRBY', KEYS[1], amount)
  lost = redis.call('PTTL', KEYS[1]) == -1
end
redis.call('SET', KEYS[2], 'aborted ' .. amount, 'PX', ARGV[2])
if lost then
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
end
return claim
