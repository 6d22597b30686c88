-- Deletes a lock, if it is still held by this token, and tells those who wait.
-- KEYS[1]  lock
-- ARGV[1]  token
-- ARGV[2]  channel on which the release is told
-- reply    'released', 'absent' or 'taken'
-- errors   WRONGTYPE: nothing is changed
local holder = redis.call('GET', KEYS[1])
if not holder then
  return 'absent'
end
if holder ~= ARGV[1] then
  return 'taken'
end
redis.call('DEL', KEYS[1])
-- Best effort: an account without channels may release all the same.
redis.pcall('PUBLISH', ARGV[2], 'released')
return 'released'
