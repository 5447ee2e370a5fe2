/**
 * The scripts of a request: admission, increase of a reservation, settlement (`account-script.ts` describes the
 * fields).
 */
import { counterFormat, script } from '../../core/limits/redis.ts'
import { common, expire, guard, helpers, keepMs } from './account-script.ts'
import { countScopes, raiseInScopes, readScopes, reserveInScopes } from './scope-scripts.ts'

/**
 * Start of the scripts that every request runs. They create no functions and convert nothing that a plain request does
 * not need; Lua arithmetic accepts numeric strings.
 */
const plain = `
local call, unpack_, account, epoch = redis.call, struct.unpack, KEYS[1], ARGV[1]
if call('GET', KEYS[2]) ~= epoch then return {-1} end
`

/** Before an admission: ends expired leases and starts a new day. */
const upToDate = `
  ${helpers}
  local day = max(y, floor(now / 86400000))
  ${expire}
  fresh = y < day
  if x > 0 and now >= x then expire() end
  if fresh then y, t, c, s, z = day, 0, 0, 0, 0 end
`

/** Converts the log of the last minute's admissions if it has the other form. */
const otherLog = `
  if bucketed then
    log = struct.pack('<I4I4', 0, 0)
    for at = 1, #other, 4 do log = log .. struct.pack('<I4I4', unpack_('<I4', other, at), (at + 3) / 4) end
  else
    local before = unpack_('<I4', other, 5)
    for at = 9, #other, 8 do
      local time, admissions = unpack_('<I4I4', other, at)
      log = log .. string.rep(struct.pack('<I4', time), math.min((admissions - before) % 4294967296, 1000))
      before = admissions
    end
  end
`

/** Decides how much of a requested reservation fits, or which limit prevents it. */
const decided = `
  ${helpers}
  local function untilOver(at) return 60000 - (now - unpack_('<I4', log, at)) % 4294967296 end
  local reset = count > 0 and untilOver(#log - width + 1) or 0
  local place
  local function answer(code, wait, cap, tokens, total, leaseDay)
    return {code, wait, cap, tokens, total, leaseDay, count, reset, t, c, n, now, s, z, place or 0}
  end
  local function refuse(code, wait, of) place = of return answer(code, wait, 0, 0, 0, y) end

  if held then
    local tokens, cost, cap, leaseDay = match(held, '^%d+:(%d+):(%d+):(%d+):(%d+)$')
    return answer(1, 0, cap, tokens, cost, leaseDay)
  end
  if count >= limitRequests then
    local wait = 60000
    if limitRequests > 0 and bucketed then
      local admissions = unpack_('<I4', log, #log - 3)
      for at = 9, #log, 8 do
        if (admissions - unpack_('<I4', log, at + 4)) % 4294967296 < limitRequests then
          wait = untilOver(at)
          break
        end
      end
    elseif limitRequests > 0 then
      wait = untilOver((over + count - limitRequests) * 4 + 1)
    end
    return refuse(2, wait)
  end
  if fullRequests then return refuse(2, requestsWait, fullRequests) end
  if free <= 0 then return refuse(3, 1000) end
  if fullSeats then return refuse(3, 1000, fullSeats) end

  local midnight = (y + 1) * 86400000 - now
  local input, choices, inputHigh, inputLow, priceHigh, priceLow = match(ARGV[13], '(%d+):(%d+):(%d+):(%d+):(%d+):(%d+)')
  input, choices, inputHigh, inputLow = tonumber(input), tonumber(choices), tonumber(inputHigh), tonumber(inputLow)
  priceHigh, priceLow = tonumber(priceHigh), tonumber(priceLow)
  local left = leftTokens - input
  local share = fair and max(floor(left / free), min(left, choices)) or left
  cap = min(tonumber(cap), floor(share / choices))
  if cap < 1 then return refuse(4, midnight, leastTokens) end

  leftCost = leftCost - inputHigh
  local function cost(tokens, high, low) return tokens * high + ceil((inputLow + tokens * low) / 1000000) end
  if cost(1, priceHigh, priceLow) > leftCost then return refuse(costCode, midnight, leastCost) end
  local high, low = parts * priceHigh + floor(parts * priceLow / 1000000), parts * priceLow % 1000000
  if cost(cap, high, low) > leftCost then
    local most = cap
    cap = min(most, floor((leftCost * 1000000 - inputLow) / (high * 1000000 + low)))
    while cap > 1 and cost(cap, high, low) > leftCost do cap = cap - 1 end
    while cap < most and cost(cap + 1, high, low) <= leftCost do cap = cap + 1 end
    cap = max(1, cap)
  end
  tokens, total = whole(input + cap * choices), whole(inputHigh + cost(cap, priceHigh, priceLow))
  cap = whole(cap)
`

/**
 * ARGV 3…: ID, limits (requests, concurrent requests, tokens, cost), requested cap with its tokens and cost, fair share
 * (1 or 0), lease in ms, and `input tokens:choices:` cost of the input and of one token of every choice, each as
 * `quotient:remainder` of a million (so that every product is exact). Then the scopes (`scope-scripts.ts`). With a lease of 0 ms nothing
 * is reserved, and the reply is {7, …} if all limits allow the request.
 *
 * Replies {1, 0, cap, tokens, cost, day, counters…}, {2…6, wait, 0, 0, 0, day, counters…, place of the scope or 0} if a
 * limit is reached, {0, day} if the account is not loaded, {-2, day} if a scope is not, {-1} under another epoch.
 */
export const admitScript = script(`${plain}
local now = ARGV[2]
if now == '' then
  local time = call('TIME')
  now = (time[1] * 1000000 + time[2]) / 1000
end
now = now - now % 1
local lease, limitRequests = 'l:' .. ARGV[3], ARGV[4] - 0
local bucketed = limitRequests > 1000
local field, otherField, width, first = 'a', 'b', 4, 0
if bucketed then field, otherField, width, first = 'b', 'a', 8, 1 end
local has = call('HMGET', account, 'e', 'm', field, lease)
if has[1] ~= epoch then return {0, math.floor(now / 86400000)} end
local y, t, c, s, z, n, x = unpack_('${counterFormat}', has[2])
local log, held, fresh = has[3], has[4], false
if now - y * 86400000 >= 86400000 or (n > 0 and now >= x) then
  ${upToDate}
end

local other = false
if not log then
  log, other = '', call('HGET', account, otherField)
end
if other then
  ${otherLog}
end
local times, over = #log / width, 0
if times > first then
  local ahead = (unpack_('<I4', log, #log - width + 1) - now) % 4294967296
  if ahead < 2147483648 then now = now + ahead end
  if (now - unpack_('<I4', log, first * width + 1)) % 4294967296 >= 60000 then
    -- Most often it is one or two that are over.
    local low, high = first + 1, first + 2
    while high < times and (now - unpack_('<I4', log, high * width + 1)) % 4294967296 >= 60000 do low, high = high + 1, high * 2 end
    if high > times then high = times end
    while low < high do
      local middle = (low + high - (low + high) % 2) / 2
      if (now - unpack_('<I4', log, middle * width + 1)) % 4294967296 >= 60000 then low = middle + 1 else high = middle end
    end
    over = low - first
    -- Copying a long one costs more than finding its place.
    if bucketed or over * 8 > times then
      log, over = string.sub(log, over * width + 1), 0
    end
  end
end
local count = #log / 4 - over
if bucketed then
  count = log == '' and 0 or (unpack_('<I4', log, #log - 3) - unpack_('<I4', log, 5)) % 4294967296
end

local cap, tokens, total, fair, free = ARGV[8], ARGV[9], ARGV[10], ARGV[11] == '1', ARGV[5] - n
local parts, leftTokens, leftCost = fair and free or 1, ARGV[6] - t, ARGV[7] - c
local scopes, fullRequests, requestsWait, fullSeats, leastTokens, leastCost
local costCode = 5
if ARGV[14] and not held then
  ${readScopes}
end
if held or count >= limitRequests or free <= 0 or tokens * parts > leftTokens or total * parts > leftCost or fullRequests or fullSeats then
  ${decided}
end

if ARGV[12] == '0' then return {7, 0, 0, 0, 0, y, count, 60000, t, c, n, now, s, z} end
if bucketed then
  if log == '' then log = struct.pack('<I4I4', 0, 0) end
  local time, admissions = unpack_('<I4I4', log, #log - 7)
  time = now - (now - time) % 4294967296
  if #log > 8 and time - time % 1000 == now - now % 1000 then log = string.sub(log, 1, #log - 8) end
  log = log .. struct.pack('<I4I4', now % 4294967296, (admissions + 1) % 4294967296)
else
  log = log .. struct.pack('<I4', now % 4294967296)
end
local expiry = now + ARGV[12]
if n == 0 or expiry < x then x = expiry end
t, c, n = t + tokens, c + total, n + 1
call('HSET', account, 'm', struct.pack('${counterFormat}', y, t, c, s, z, n, x), field, log,
  lease, string.format('%.0f:%s:%s:%s:%d', expiry, tokens, total, cap, y))
if scopes then
  ${reserveInScopes}
end
if other then call('HDEL', account, otherField) end
if fresh then call('PEXPIRE', account, ${keepMs}) end
return {1, 0, cap, tokens, total, y, count + 1, 60000, t, c, n, now, s, z}
`)

/**
 * ARGV 3…: ID, tokens, cost, 1 = it may have a checkpoint, 1 = it may have scopes. Replies {1, y, t, c, n, now, s, z},
 * {2, …} if there was nothing to settle, {0, day} if the account is not loaded, {-1} under another epoch.
 */
export const settleScript = script(`${plain}
local now, id, tokens, cost = ARGV[2], ARGV[3], ARGV[4] - 0, ARGV[5] - 0
local lease = 'l:' .. id
local has = call('HMGET', account, 'e', 'm', lease)
if has[1] ~= epoch then
  return {0, math.floor((now == '' and call('TIME')[1] * 1000 or now) / 86400000)}
end
local y, t, c, s, z, n, x = unpack_('${counterFormat}', has[2])
local status = 2
if has[3] then
  local reserved, reservedCost, leaseDay = string.match(has[3], '^%d+:(%d+):(%d+):%d+:(%d+)$')
  n = n - 1
  if leaseDay - y == 0 then
    -- Usage above the reservation counts too; the caller limits the money of accounts that pay at most the reservation.
    t, c, s, z = t - reserved + tokens, c - reservedCost + cost, s + tokens, z + cost
  end
  if ARGV[7] == '1' then
    ${countScopes}
    countScopes(id, leaseDay, tokens - reserved, cost - reservedCost, tokens, cost, -1)
    call('HDEL', account, 'k:' .. id)
  end
  call('HSET', account, 'm', struct.pack('${counterFormat}', y, t, c, s, z, n, x))
  if ARGV[6] == '1' then call('HDEL', account, lease, 'p:' .. id, 'o:' .. id) else call('HDEL', account, lease) end
  status = 1
else
  local over = call('HGET', account, 'g:' .. id)
  if over then
    -- It has ended after all: the counters get what they do not hold of it yet.
    local leaseDay, hadTokens, hadCost = string.match(over, '^(%d+):(%d+):(%d+):1$')
    if not leaseDay then leaseDay, hadTokens, hadCost = string.match(over, '^%d+'), 0, 0 end
    ${countScopes}
    countScopes(id, leaseDay, tokens - hadTokens, cost - hadCost, tokens - hadTokens, cost - hadCost, 0)
    call('HDEL', account, 'g:' .. id, 'k:' .. id)
    if leaseDay - y == 0 then
      local moreTokens, moreCost = tokens - hadTokens, cost - hadCost
      t, c, s, z = t + moreTokens, c + moreCost, s + moreTokens, z + moreCost
      call('HSET', account, 'm', struct.pack('${counterFormat}', y, t, c, s, z, n, x))
    end
    status = 1
  end
end
if now == '' then
  local time = call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
return {status, y, t, c, n, now, s, z}
`)

/** Replies {1, 0, 0, 0, 0, day, counters…} as an admission does, and writes nothing; {0, day} if the account is not loaded, {-1}. */
export const statusScript = script(`${common}${guard}
local has = call('HMGET', account, 'e', 'm', 'a', 'b')
if has[1] ~= epoch then return {0, day} end
local y, t, c, s, z, n = unpack_('${counterFormat}', has[2])
if y < day then y, t, c, s, z = day, 0, 0, 0, 0 end
local function ageAt(log, at)
  local past = (now - unpack_('<I4', log, at)) % 4294967296
  return past < 2147483648 and past or 0
end
local count, age = 0, 60000
if has[3] then
  local log = has[3]
  for at = #log - 3, 1, -4 do
    if ageAt(log, at) >= 60000 then break end
    count = count + 1
  end
  if count > 0 then age = ageAt(log, #log - 3) end
elseif has[4] then
  local log = has[4]
  local before = unpack_('<I4', log, 5)
  for at = 9, #log, 8 do
    if ageAt(log, at) < 60000 then break end
    before = unpack_('<I4', log, at + 4)
  end
  count = (unpack_('<I4', log, #log - 3) - before) % 4294967296
  if count > 0 then age = ageAt(log, #log - 7) end
end
return {1, 0, 0, 0, 0, y, count, 60000 - age, t, c, n, now, s, z}
`)

/**
 * ARGV 3…: ID, tokens, cost, limits of both, scopes. Replies {1, tokens, cost, t, c}, {0} if the account cannot pay for it,
 * {-1}.
 */
export const raiseScript = script(`${common}${guard}
local lease = 'l:' .. ARGV[3]
local has = call('HMGET', account, 'e', 'm', lease)
if has[1] ~= epoch or not has[3] then return {0} end
local expiry, tokens, cost, cap, leaseDay = match(has[3], '^(%d+):(%d+):(%d+):(%d+):(%d+)$')
local y, t, c, s, z, n, x = unpack_('${counterFormat}', has[2])
if tonumber(leaseDay) ~= y then return {0} end
tokens, cost = tonumber(tokens), tonumber(cost)
local moreTokens, moreCost = max(0, tonumber(ARGV[4]) - tokens), max(0, tonumber(ARGV[5]) - cost)
t, c = t + moreTokens, c + moreCost
if t > tonumber(ARGV[6]) or c > tonumber(ARGV[7]) then return {0} end
if ARGV[8] then
  ${raiseInScopes}
end
tokens, cost = tokens + moreTokens, cost + moreCost
setCounters(y, t, c, s, z, n, x)
call('HSET', account, lease, expiry .. ':' .. whole(tokens) .. ':' .. whole(cost) .. ':' .. cap .. ':' .. leaseDay)
return {1, tokens, cost, t, c}
`)
