-- Reads a text without touching it.
-- KEYS[1]  key
-- reply    its text, or nil if there is none
-- errors   WRONGTYPE
return redis.call('GET', KEYS[1])
