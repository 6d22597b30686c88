-- Ends a claim as billed.
-- KEYS[1]  claim
-- ARGV[1]  the amount that was billed
-- ARGV[2]  how long an ended claim is kept, in milliseconds
-- reply    the claim as it was found: 'open', 'committed' or 'aborted' and its amount; or nil if there is none.
--          It was ended if it was open with this amount.
-- errors   WRONGTYPE, OOM: nothing is changed
local claim = redis.call('GET', KEYS[1])
if claim == 'open ' .. ARGV[1] then
  redis.call('SET', KEYS[1], 'committed ' .. ARGV[1], 'PX', ARGV[2])
end
return claim
