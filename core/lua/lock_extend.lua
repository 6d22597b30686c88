-- Gives a lock a new TTL, if it is still held by this token.
-- KEYS[1]  lock
-- KEYS[2]  the last fence of this lock
-- ARGV[1]  token
-- ARGV[2]  TTL of the lock in milliseconds, checked by the caller
-- ARGV[3]  TTL of the fence in milliseconds
-- reply    'extended', 'absent' or 'taken'
-- errors   WRONGTYPE: nothing is changed
local holder = redis.call('GET', KEYS[1])
if not holder then
  return 'absent'
end
if holder ~= ARGV[1] then
  return 'taken'
end
-- PEXPIRE takes no memory: a server that is out of it does not end the lease.
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('PEXPIRE', KEYS[2], ARGV[3])
return 'extended'
