-- How many of the planted keys have at most 15 minutes, how many of the others have more, and how many keys are otherwise.
local planted, others, otherwise = 0, 0, 0
for number = 0, ARGV[1] - 1 do
  local left = redis.call('PTTL', 'session:' .. string.format('%d', number) .. ':pending')
  if number % 1000 == 7 and left > 0 and left <= 900000 then
    planted = planted + 1
  elseif number % 1000 ~= 7 and left > 900000 then
    others = others + 1
  else
    otherwise = otherwise + 1
  end
end
return {planted, others, otherwise}
