-- Deletes a counter and tells what was left in it.
-- KEYS[1]  counter
-- reply    the amount as text, or nil if there is no counter
-- errors   WRONGTYPE, not an integer: nothing is deleted
local amount = redis.call('GET', KEYS[1])
if not amount then
  return false
end
-- INCRBY would check this too, but a server that is out of memory refuses it, and deleting frees memory.
local sign, digits = string.match(amount, '^(%-?)([1-9]%d*)$')
local most = sign == '-' and '9223372036854775808' or '9223372036854775807'
local fits = digits and (#digits < #most or (#digits == #most and digits <= most))
if amount ~= '0' and not fits then
  return redis.error_reply('ERR value is not an integer or out of range')
end
redis.call('DEL', KEYS[1])
return amount
