for number = ARGV[1], ARGV[2] - 1 do
  local key = 'session:' .. string.format('%d', number) .. ':pending'
  if number % 1000 == 7 then
    redis.call('SET', key, number)
  else
    redis.call('SET', key, number, 'PX', 3600000)
  end
end
