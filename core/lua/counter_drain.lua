-- Takes what a counter holds and leaves 0 in it, with the TTL that it has.
-- KEYS[1]  counter
-- KEYS[2]  guard of the counter, if the drain carries a fence
-- ARGV[1]  TTL in milliseconds for a counter that has lost its own
-- ARGV[2]  fence, if any
-- ARGV[3]  TTL of the guard in milliseconds, if any
-- reply    {amount as text, 'kept' or 'healed'}, nil if there is no counter,
--          or {the higher fence that was seen here, 'fenced_off'}
-- errors   WRONGTYPE, not an integer, OOM: raised by GET and INCRBY, before anything is changed
local amount = redis.call('GET', KEYS[1])
local fence = ARGV[2]
if fence then
  local highest = redis.call('GET', KEYS[2])
  -- Compared as text, by length and then by digits: a Lua number would round them.
  if highest and (#highest > #fence or (#highest == #fence and highest > fence)) then
    return {highest, 'fenced_off'}
  end
end
if amount then
  -- Adding nothing changes nothing, but is refused unless the text is a whole number of 64 bits.
  redis.call('INCRBY', KEYS[1], '0')
end
if fence then
  redis.call('SET', KEYS[2], fence, 'PX', ARGV[3])
end
if not amount then
  return false
end
local healed = redis.call('PTTL', KEYS[1]) == -1
-- KEEPTTL on a key that is not there would make one without a TTL, hence XX.
redis.call('SET', KEYS[1], '0', 'XX', 'KEEPTTL')
if healed then
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
  return {amount, 'healed'}
end
return {amount, 'kept'}
