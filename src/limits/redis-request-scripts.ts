/** The scripts of a request: admission and settlement (`redis-common.ts` describes the keys). */
import { script } from '../core/limits/redis.ts'
import { keepMs, minuteMs, notesKeptMs } from './constants.ts'
import { change, expire, forget, guard, prelude, reset } from './redis-common.ts'

/**
 * Admits requests, those of one account together: in ARGV 3… lease in ms (0 = only decide), then per account: number of
 * requests, and per request: ID, limits (`requests:concurrent requests:tokens:cost:cost of the month`; empty = unlimited),
 * requested cap with its tokens and cost, fair share (1 or 0), `input tokens:choices:` cost of the input and of one token
 * of every choice, each as `quotient:remainder` of a million (so that every product is exact), number of scopes, and per
 * scope: name and limits, and the field of the note of its conversation (empty = none). Without costs of input and output
 * it increases an open reservation to these tokens and cost, or changes nothing.
 *
 * Lua takes most of the time: what requests of one call share is parsed and written as text once.
 *
 * Replies per request {code, wait, cap, tokens, cost, day, requests, reset, tokens, cost, open, now, place, note}: code 1 =
 * admitted, 2 to 6 = a limit is reached, of the scope at `place` or of the account, 7 = it would be admitted, 8 = only the
 * allowances of instances are in the way; 0 = the account is not loaded, {-2, day} = a scope is not.
 */
export const admitScript = script(`${prelude}${guard}${expire}${forget}
local leaseMs, replies, parsed = tonumber(ARGV[3]), {}, {}
local leaseEnd = whole(now + leaseMs)

local function getLimits(text)
  if not parsed[text] then
    local requests, open, tokens, cost, month = match(text, '^(%d*):(%d*):(%d*):(%d*):(%d*)$')
    parsed[text] = {requests = tonumber(requests), open = tonumber(open), tokens = tonumber(tokens), cost = tonumber(cost), month = tonumber(month)}
  end
  return parsed[text]
end

-- Reads the counters of an account or a scope once for all requests of the call.
local function open(base, has, y)
  begin(base, has, y)
  return {base = base, day = has[2] - 0, tokens = has[3] - 0, cost = has[4] - 0, month = has[5], monthCost = has[6], minute = {}, leases = {}}
end
local function minuteOf(one, time)
  one.requests = one.requests or call('ZCOUNT', one.base .. ':minute', '(' .. time - ${minuteMs}, '+inf')
  return one.requests
end
local function countOpen(one)
  one.open = one.open or call('ZCARD', one.base .. ':leases')
  return one.open
end
local function getWait(one, limit, time)
  local count = minuteOf(one, time)
  if count < limit then return 0 end
  local first = '(' .. time - ${minuteMs}
  local blocking = limit > 0 and call('ZRANGEBYSCORE', one.base .. ':minute', first, '+inf', 'WITHSCORES', 'LIMIT', count - limit, 1)[2]
  return (blocking or time) + ${minuteMs} - time
end
local function add(one, id, tokens, cost, own, isMinuteLimited)
  one.tokens, one.cost, one.isChanged = one.tokens + tokens, one.cost + cost, true
  if one.month then one.monthCost = one.monthCost + cost end
  if not id then return end
  if isMinuteLimited then
    local minute, last = one.minute, #one.minute
    one.requests = minuteOf(one, own.time) + 1
    minute[last + 1], minute[last + 2] = own.timeText, id
  end
  local leases, last = one.leases, #one.leases
  one.open = countOpen(one) + 1
  leases[last + 1], leases[last + 2] = leaseEnd, id
end
-- The first command needs memory: after another write a full Redis would accept it, and then fail at the settlement.
local function write(one, ...)
  if not one.isChanged then return end
  call('HSET', one.base, 'day', one.day, 'tokens', whole(one.tokens), 'cost', whole(one.cost), ...)
  if one.month then call('HSET', one.base, 'month', one.month, 'monthCost', whole(one.monthCost)) end
  if #one.minute > 0 then
    call('ZREMRANGEBYSCORE', one.base .. ':minute', '-inf', one.minute[1] - ${minuteMs})
    call('ZADD', one.base .. ':minute', unpack(one.minute))
  end
  if #one.leases > 0 then call('ZADD', one.base .. ':leases', unpack(one.leases)) end
end

-- How much of a request fits into what is left, or the code of the limit that prevents it.
local function size(at, left, leftCost, free, costCode)
  local cap, tokens, total, parts = ARGV[at + 2], ARGV[at + 3], ARGV[at + 4], ARGV[at + 5] == '1' and free or 1
  if tokens * parts <= left and total * parts <= leftCost then return 1, cap, tokens, total end
  if ARGV[at + 6] == '' then return costCode end
  local input, choices, inputHigh, inputLow, priceHigh, priceLow = match(ARGV[at + 6], '(%d+):(%d+):(%d+):(%d+):(%d+):(%d+)')
  input, choices, inputHigh, inputLow = tonumber(input), tonumber(choices), tonumber(inputHigh), tonumber(inputLow)
  priceHigh, priceLow = tonumber(priceHigh), tonumber(priceLow)
  left = left - input
  local share = parts ~= 1 and max(floor(left / free), min(left, choices)) or left
  cap = min(tonumber(cap), floor(share / choices))
  if cap < 1 then return 4 end
  leftCost = leftCost - inputHigh
  local function cost(of, high, low) return of * high + ceil((inputLow + of * low) / 1000000) end
  if cost(1, priceHigh, priceLow) > leftCost then return costCode end
  local high, low = parts * priceHigh + floor(parts * priceLow / 1000000), parts * priceLow % 1000000
  if cost(cap, high, low) > leftCost then
    local most = cap
    cap = min(most, floor((leftCost * 1000000 - inputLow) / (high * 1000000 + low)))
    while cap > 1 and cost(cap, high, low) > leftCost do cap = cap - 1 end
    while cap < most and cost(cap + 1, high, low) <= leftCost do cap = cap + 1 end
    cap = max(1, cap)
  end
  return 1, whole(cap), whole(input + cap * choices), whole(inputHigh + cost(cap, priceHigh, priceLow))
end

local function reply(own, code, wait, cap, tokens, total, place, day)
  return {code, wait, cap, tokens, total, day or own.day, own.requests, own.requests > 0 and own.reset or 0, own.tokens, own.cost, countOpen(own), own.time, place or 0}
end

local function admit(own, scopes, at, held, ended, leases)
  local id, y, time, limits, isRaise = ARGV[at], own.day, own.time, getLimits(ARGV[at + 1]), ARGV[at + 6] == ''
  minuteOf(own, time)
  local heldTokens, heldCost, cap, day, admitted
  -- A late call may admit a request that was admitted from an allowance and has ended: it reserves nothing more.
  if held or ended then heldTokens, heldCost, cap, day, admitted = match(held or ended, lease) end
  if isRaise then
    if not held or day - y ~= 0 then return reply(own, 4, 0, 0, 0, 0) end
    ARGV[at + 3], ARGV[at + 4] = max(0, ARGV[at + 3] - heldTokens), max(0, ARGV[at + 4] - heldCost)
  elseif day then
    return reply(own, 1, 0, cap, heldTokens, heldCost, 0, day)
  end
  local left, leftCost, costCode, leastTokens, leastCost = limits.tokens - own.tokens, limits.cost - own.cost, 5, own, own
  local requestsWait, fullRequests, fullOpen, places = getWait(own, limits.requests, time), nil, nil, {}
  if requestsWait > 0 then return reply(own, 2, requestsWait, 0, 0, 0) end
  for place = 1, ARGV[at + 7] do
    local base = own.base .. '|' .. ARGV[at + 6 + place * 2]
    if not scopes[base] then
      local has = call('HMGET', base, 'g', 'day', 'tokens', 'cost', 'month', 'monthCost')
      if has[1] ~= generation then return {-2, y} end
      scopes[base] = open(base, has, y)
    end
    local one, its = scopes[base], getLimits(ARGV[at + 7 + place * 2])
    places[place], places[one] = one, place
    if its.requests and not fullRequests then
      requestsWait = getWait(one, its.requests, time)
      if requestsWait > 0 then fullRequests = place end
    end
    if its.open and not fullOpen and countOpen(one) >= its.open then fullOpen = place end
    if its.tokens and its.tokens - one.tokens < left then left, leastTokens = its.tokens - one.tokens, one end
    if its.cost and its.cost - one.cost < leftCost then leftCost, leastCost, costCode = its.cost - one.cost, one, 5 end
    if its.month and its.month - one.monthCost < leftCost then leftCost, leastCost, costCode = its.month - one.monthCost, one, 6 end
  end
  if fullRequests then return reply(own, 2, requestsWait, 0, 0, 0, fullRequests) end
  local free = limits.open - countOpen(own)
  if free <= 0 then return reply(own, 3, 1000, 0, 0, 0) end
  if fullOpen then return reply(own, 3, 1000, 0, 0, 0, fullOpen) end
  local code, tokens, total
  code, cap, tokens, total = size(at, left, leftCost, free, costCode)
  if code ~= 1 then
    local place = places[code == 4 and leastTokens or leastCost]
    local moreTokens, _ = heldOf(leastTokens.base)
    local _, moreCost = heldOf(leastCost.base)
    if moreTokens + moreCost > 0 and size(at, left + moreTokens, leftCost + moreCost, free, costCode) == 1 then code = 8 end
    return reply(own, code, (y + 1) * 86400000 - time, 0, 0, 0, place)
  end
  if leaseMs == 0 then return reply(own, 7, 0, 0, 0, 0) end
  local names = ''
  for place, one in ipairs(places) do
    names = (place == 1 and '' or names .. '\\n') .. ARGV[at + 6 + place * 2]
    add(one, not isRaise and id, tokens, total, own, getLimits(ARGV[at + 7 + place * 2]).requests)
  end
  add(own, not isRaise and id, tokens, total, own, true)
  if isRaise then tokens, total = whole(tokens + heldTokens), whole(total + heldCost) else own.reset = ${minuteMs} end
  leases['l:' .. id] = tokens .. ':' .. total .. ':' .. cap .. ':' .. own.dayText .. ':' .. (admitted or own.timeText) .. '\\n' .. names
  return reply(own, 1, 0, cap, tokens, total)
end

local function admitAll(account, at)
  local starts, fields, next = {}, {'g', 'day', 'tokens', 'cost', 'at'}, at + 1
  for index = 1, ARGV[at] do
    starts[index], fields[index * 2 + 4], fields[index * 2 + 5] = next, 'l:' .. ARGV[next], 'x:' .. ARGV[next]
    next = next + 9 + ARGV[next + 7] * 2
  end
  expire(account)
  local has = call('HMGET', account, unpack(fields))
  if has[1] ~= generation then
    for _ in ipairs(starts) do replies[#replies + 1] = {0} end
    return next
  end
  local time, newest, before = max(now, has[5] - 0, has[2] * 86400000), has[5] - 0, has[2] - 0
  local own, scopes, leases = open(account, {has[1], has[2], has[3], has[4]}, max(before, floor(time / 86400000))), {}, {}
  own.time, own.timeText, own.dayText, own.reset = time, whole(time), whole(own.day), newest + ${minuteMs} - time
  for index, start in ipairs(starts) do
    -- Another call of the same turn may be about the same request.
    local held = leases[fields[index * 2 + 4]] or has[index * 2 + 4]
    local reply, field = admit(own, scopes, start, held, has[index * 2 + 5], leases), ARGV[start + 8 + ARGV[start + 7] * 2]
    if reply[1] == 1 and field ~= '' then reply[14] = call('HGET', account .. ':notes', field) end
    replies[#replies + 1] = reply
  end
  local written, last = {}, 0
  for field, detail in pairs(leases) do
    written[last + 1], written[last + 2], last = field, detail, last + 2
  end
  write(own, 'at', #own.minute > 0 and time or newest, unpack(written))
  for _, one in pairs(scopes) do
    write(one)
    if one.isChanged then
      for _, suffix in ipairs({'', ':minute', ':leases'}) do call('PEXPIRE', one.base .. suffix, ${keepMs}) end
    end
  end
  if own.day > before and own.isChanged then forget(account, own.day) end
  return next
end

local at = 4
for index = 2, #KEYS do at = admitAll(KEYS[index], at) end
return replies
`)

/**
 * Settles requests, those of one account together: in ARGV 3… per account: number of requests, and per request: ID, tokens,
 * cost, if it was admitted from an allowance its detail (as in l:), else empty, and the field and the text of its note. Replies per request {1, day, tokens,
 * cost, open, now}; {2, …} if there was nothing to settle; {0} if the account is not loaded, which then counts the request
 * when it loads. A repeated settlement changes nothing.
 */
export const settleScript = script(`${prelude}${guard}${change}${reset}
local replies = {}
local function settleAll(account, at)
  local fields, count = {'g', 'day', 'tokens', 'cost', 'month', 'r'}, ARGV[at] - 0
  for index = 0, count - 1 do
    local id = ARGV[at + 1 + index * 6]
    fields[index * 2 + 7], fields[index * 2 + 8] = 'l:' .. id, 'x:' .. id
  end
  local has = call('HMGET', account, unpack(fields))
  local isLoaded, isChanged = has[1] == generation, false
  local isGone = not isLoaded and has[6] ~= generation and reset(account)
  if not isLoaded and has[6] ~= generation then has = {} end
  local statuses, ended, marks, sets, notes = {}, {}, {}, {}, {}
  for index = 0, count - 1 do
    local first = at + 1 + index * 6
    local id, tokens, cost, detail = ARGV[first], ARGV[first + 1], ARGV[first + 2], ARGV[first + 3]
    local open, over = has[index * 2 + 7], has[index * 2 + 8]
    local known = open or over or (detail ~= '' and not isGone and detail)
    statuses[index + 1] = known and 1 or 2
    if known then
      if ARGV[first + 4] ~= '' then
        notes[#notes + 1] = ARGV[first + 4]
        notes[#notes + 1] = ARGV[first + 5]
      end
      local hadTokens, hadCost, cap, day, admitted, names = match(known, lease)
      if not open and not over then
        hadTokens, hadCost = 0, 0
        countMinute(account, names, id, admitted)
      end
      if isLoaded then
        local moreTokens, moreCost = tokens - hadTokens, cost - hadCost
        begin(account, has, min(day, today))
        if has[2] - day == 0 then has[3], has[4], isChanged = has[3] + moreTokens, has[4] + moreCost, true end
      end
      if names ~= '' then changeScopes(account, names, day, tokens - hadTokens, cost - hadCost, id) end
      if open then
        ended[#ended + 1] = id
        marks[#marks + 1] = 'l:' .. id
        marks[#marks + 1] = 'p:' .. id
      end
      if not open or not isLoaded or detail ~= '' then
        sets[#sets + 1] = 'x:' .. id
        sets[#sets + 1] = tokens .. ':' .. cost .. ':' .. cap .. ':' .. day .. ':' .. admitted .. '\\n' .. names
      end
    end
  end
  if isChanged then
    for _, value in ipairs({'day', has[2], 'tokens', whole(has[3]), 'cost', whole(has[4])}) do sets[#sets + 1] = value end
  end
  if #sets > 0 then call('HSET', account, unpack(sets)) end
  if #ended > 0 then
    call('HDEL', account, unpack(marks))
    call('ZREM', account .. ':leases', unpack(ended))
  end
  if #notes > 0 then
    call('HSET', account .. ':notes', unpack(notes))
    call('PEXPIRE', account .. ':notes', ${notesKeptMs})
  end
  local open = isLoaded and call('ZCARD', account .. ':leases')
  for _, status in ipairs(statuses) do
    replies[#replies + 1] = isLoaded and {status, has[2], has[3], has[4], open, now} or {0}
  end
  return at + 1 + count * 6
end
local at = 3
for index = 2, #KEYS do at = settleAll(KEYS[index], at) end
return replies
`)
