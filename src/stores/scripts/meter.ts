/**
 * The meter's Lua, run inside Redis: one step each, whatever else is going on. An account is one hash:
 *
 *   e          the epoch it is valid under; under any other it is as good as absent
 *   m          the counters, seven packed doubles, since every field and every number in words costs:
 *     y t c      UTC day, tokens and cost (1e-8 USD) of it, reservations included; day -1 = to be read from the ledger
 *     s z        of t and c what is settled: without open reservations, so that within a day they only grow
 *     n x        seats taken; no lease runs out before x, 0 = not known of any
 *   a          admission times of the last minute, 32 bits of each: a sliding log, exact
 *   b          the same above a thousand a minute: pairs of a second's latest time and of all admissions until then; the first
 *              pair is only there to be subtracted; never over, at most 1 s late
 *   l:<id>     a lease: expiry:tokens:cost:cap:day
 *   p:<id>     what its request had used when it was last heard of: tokens:cost:record
 *   o:<id>     the gateway that said so
 *   g:<id>     a lease that ran out: day:recorded (1 = settled to its last checkpoint)
 *   u:<id>     used, settled, and perhaps not in the ledger yet: tokens:cost:day; only until the counters are read from it
 *   k          the most that anybody knows to be settled, day:tokens:cost; what a day begins with where the ledger is away
 *   d:<id>     what a gateway has settled by itself on top of that, without Redis: day:tokens:cost; empty id = in Redis, before
 *              the day had begun here
 *
 * KEYS are the hash, the epoch and the usage stream of its partition, ARGV begins with the caller's epoch and the time
 * (empty = the server's own). Numbers are written with %.0f, since Lua's own way turns large ones into 1e+15.
 */
import { script } from '../redis.ts'

/** How the seven counters are packed, as Redis' `struct` has it. */
export const counterFormat = '<ddddddd'

const helpers = `
local call, floor, ceil, max, min = redis.call, math.floor, math.ceil, math.max, math.min
local match, sub, format, pack, unpack_ = string.match, string.sub, string.format, struct.pack, struct.unpack
local function whole(number) return format('%.0f', number) end
local function setCounters(...) call('HSET', account, 'm', pack('${counterFormat}', ...)) end
local function countersOf(text)
  if not text then return -1, 0, 0, 0, 0, 0, 0 end
  return unpack_('${counterFormat}', text)
end
local keepMs = 172800000
`

const common = `
local account, epoch = KEYS[1], ARGV[1]
${helpers}
local now = tonumber(ARGV[2])
if not now then
  local time = call('TIME')
  now = time[1] * 1000 + floor(time[2] / 1000)
end
local day = floor(now / 86400000)
`

/** The most that is known to be settled, of two sayings `day:tokens:cost`; and one more that was settled, on a field. */
const knowing = `
local triple = '^(%d+):(%d+):(%d+)$'
local function most(one, other)
  if not one or not other then return one or other end
  local day1, t1, c1 = match(one, triple)
  local day2, t2, c2 = match(other, triple)
  day1, day2 = tonumber(day1), tonumber(day2)
  if day1 ~= day2 then return day1 > day2 and one or other end
  return whole(day1) .. ':' .. whole(max(tonumber(t1), tonumber(t2))) .. ':' .. whole(max(tonumber(c1), tonumber(c2)))
end
local function settledUnread(tokens, cost, leaseDay)
  local had, t, c = match(call('HGET', account, 'd:') or '', triple)
  if had and tonumber(had) > leaseDay then return end
  if had and tonumber(had) == leaseDay then tokens, cost = tokens + tonumber(t), cost + tonumber(c) end
  call('HSET', account, 'd:', whole(leaseDay) .. ':' .. whole(tokens) .. ':' .. whole(cost))
end
`

const guard = `
if call('GET', KEYS[2]) ~= epoch then return {-1} end
`

/**
 * Begins a hash under a new epoch. Leases with a checkpoint go on in it: their gateways may be dead, and could not register
 * them again. So does what was settled to one: a gateway that was only asleep must not settle it once more.
 */
const renewEpoch = `
local function renewEpoch()
  local kept, n, all = {}, 0, call('HGETALL', account)
  local value, x = {}, 0
  for i = 1, #all, 2 do value[all[i]] = all[i + 1] end
  local y, t, c, s, z = countersOf(value.m)
  for field, text in pairs(value) do
    local kind, id = sub(field, 1, 2), sub(field, 3)
    local lease = value['l:' .. id]
    if kind == 'p:' and lease then
      local expiry = tonumber(match(lease, '^%d+'))
      n, x = n + 1, n > 0 and min(x, expiry) or expiry
      kept[#kept + 1] = {field, text, 'l:' .. id, lease}
      if value['o:' .. id] then kept[#kept + 1] = {'o:' .. id, value['o:' .. id]} end
    elseif kind == 'g:' or kind == 'u:' or (kind == 'd:' and y == -1) then
      kept[#kept + 1] = {field, text}
    end
  end
  local known = value.k
  if y ~= -1 then known = most(known, whole(y) .. ':' .. whole(s) .. ':' .. whole(z)) end
  if known then kept[#kept + 1] = {'k', known} end
  call('DEL', account)
  call('HSET', account, 'e', epoch)
  setCounters(-1, 0, 0, 0, 0, n, x)
  for _, one in ipairs(kept) do call('HSET', account, unpack(one)) end
  call('PEXPIRE', account, keepMs)
end
`

/**
 * Leases that ran out: what they reserved goes back, less what their last checkpoint says was used. Where `living` names
 * gateways, only those that another one left behind: nobody could renew them, so that they ran out says nothing.
 */
const expire = `
local function expire(living)
  local all, nextExpiry = call('HGETALL', account), false
  for i = 1, #all, 2 do
    local kind, id = sub(all[i], 1, 2), sub(all[i], 3)
    if kind == 'l:' then
      local expiry, tokens, cost, cap, leaseDay = match(all[i + 1], '^(%d+):(%d+):(%d+):(%d+):(%d+)$')
      expiry, tokens, cost, leaseDay = tonumber(expiry), tonumber(tokens), tonumber(cost), tonumber(leaseDay)
      local isOver = expiry <= now
      if isOver and living then
        local owner = call('HGET', account, 'o:' .. id)
        isOver = owner and not living[owner]
      end
      if not isOver then
        nextExpiry = nextExpiry and min(nextExpiry, expiry) or expiry
      else
        local usedTokens, usedCost, record = 0, 0, false
        local checkpoint = call('HGET', account, 'p:' .. id)
        if checkpoint then
          usedTokens, usedCost, record = match(checkpoint, '^(%d+):(%d+):(.*)$')
          call('XADD', KEYS[3], '*', 'r', record)
        end
        if leaseDay == y then
          t = t - tokens + min(tokens, tonumber(usedTokens))
          c = c - cost + min(cost, tonumber(usedCost))
          s = s + min(tokens, tonumber(usedTokens))
          z = z + min(cost, tonumber(usedCost))
        elseif record and y == -1 then
          settledUnread(tonumber(usedTokens), tonumber(usedCost), leaseDay)
        end
        if record and (y == -1 or living) then
          call('HSET', account, 'u:' .. id, usedTokens .. ':' .. usedCost .. ':' .. whole(leaseDay))
        end
        n = n - 1
        call('HDEL', account, all[i], 'p:' .. id, 'o:' .. id)
        call('HSET', account, 'g:' .. id, whole(leaseDay) .. ':' .. (record and 1 or 0))
      end
    elseif kind == 'g:' and tonumber(match(all[i + 1], '^%d+')) < day - 1 then
      call('HDEL', account, all[i])
    end
  end
  x = nextExpiry or 0
  setCounters(y, t, c, s, z, n, x)
end
`

/** The beginning of what every request runs. Such scripts make nothing that a plain request does not need. */
const plain = `
local call, unpack_, account, epoch = redis.call, struct.unpack, KEYS[1], ARGV[1]
if call('GET', KEYS[2]) ~= epoch then return {-1} end
`

/** Before an admission: the day is begun, with the ledger or by the clock, and what ran out is taken back. */
const upToDate = `
  ${helpers}${knowing}
  local day = max(y, floor(now / 86400000))
  ${expire}
  fresh = y < day
  if y == -1 then
    local all, isWhole, byHeart = call('HGETALL', account), #ARGV > 13, ARGV[15] == ''
    local heard, reply, known = {}, {0, day}, false
    for i = 17, #ARGV do heard[ARGV[i]] = true end
    for i = 1, #all, 2 do
      if all[i] == 'k' then known = all[i + 1] end
      if sub(all[i], 1, 2) == 'u:' then
        reply[#reply + 1] = sub(all[i], 3)
        reply[#reply + 1] = all[i + 1]
        isWhole = isWhole and (byHeart or heard[sub(all[i], 3)])
      end
    end
    if not isWhole or (byHeart and not known) then return reply end
    y, t, c = tonumber(ARGV[14]), tonumber(ARGV[15]) or 0, tonumber(ARGV[16]) or 0
    for i = 1, #all, 2 do
      if all[i] == 'k' or sub(all[i], 1, 2) == 'd:' then
        local knownDay, tokens, cost = match(all[i + 1], triple)
        if byHeart and tonumber(knownDay) == y then t, c = t + tonumber(tokens), c + tonumber(cost) end
        call('HDEL', account, all[i])
      end
    end
    s, z = t, c
    for i = 1, #all, 2 do
      if sub(all[i], 1, 2) == 'l:' then
        local tokens, cost, leaseDay = match(all[i + 1], '^%d+:(%d+):(%d+):%d+:(%d+)$')
        if tonumber(leaseDay) == y then t, c = t + tonumber(tokens), c + tonumber(cost) end
      elseif sub(all[i], 1, 2) == 'u:' then
        call('HDEL', account, all[i])
      end
    end
    call('HSET', account, 'e', epoch)
    setCounters(y, t, c, s, z, n, x)
    call('PEXPIRE', account, keepMs)
  end
  if x > 0 and now >= x then expire() end
  if y < day then y, t, c, s, z = day, 0, 0, 0, 0 end
`

/** The log of the last minute's admissions, where it was kept in the other form. */
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

/** How much of a wish there is room for, or which limit is in the way. */
const decided = `
  ${helpers}
  local function untilOver(at) return 60000 - (now - unpack_('<I4', log, at)) % 4294967296 end
  local reset = count > 0 and untilOver(#log - width + 1) or 0
  local function answer(code, wait, cap, tokens, total, leaseDay)
    return {code, wait, cap, tokens, total, leaseDay, count, reset, t, c, n, now, s, z}
  end
  local function refuse(code, wait) return answer(code, wait, 0, 0, 0, y) end

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
  if free <= 0 then return refuse(3, 1000) end

  local midnight = (y + 1) * 86400000 - now
  local input, choices, inputHigh, inputLow, priceHigh, priceLow = match(ARGV[13], '(%d+):(%d+):(%d+):(%d+):(%d+):(%d+)')
  input, choices, inputHigh, inputLow = tonumber(input), tonumber(choices), tonumber(inputHigh), tonumber(inputLow)
  priceHigh, priceLow = tonumber(priceHigh), tonumber(priceLow)
  local left = ARGV[6] - t - input
  local share = fair and max(floor(left / free), min(left, choices)) or left
  cap = min(tonumber(cap), floor(share / choices))
  if cap < 1 then return refuse(4, midnight) end

  local leftCost = ARGV[7] - c - inputHigh
  local function cost(tokens, high, low) return tokens * high + ceil((inputLow + tokens * low) / 1000000) end
  if cost(1, priceHigh, priceLow) > leftCost then return refuse(5, midnight) end
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
 * ARGV 3…: id, limits (requests, seats, tokens, cost), wanted cap, tokens and cost of what is wanted, fair share (1 or 0), lease
 * in ms, `input tokens:choices:` cost of the input and of one token of every answer, each as `quotient:remainder` of a million
 * (so that every product is exact), and the ledger's day, tokens and cost where the counters are to begin with them, with the
 * ids of the u-fields that were looked for in it; tokens and cost empty = the ledger is away, and what gateways know is to do.
 *
 * Replies {1, 0, cap, tokens, cost, day, standing…}, {2…5, wait, 0, 0, 0, day, standing…} where a limit is in the way,
 * {0, day, u-fields…} where the ledger is to be read first, or once more, {-1} under another epoch.
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
if has[1] and has[1] ~= epoch then
  ${helpers}${knowing}${renewEpoch}
  renewEpoch()
  has = call('HMGET', account, 'e', 'm', field, lease)
end
local y, t, c, s, z, n, x = -1, 0, 0, 0, 0, 0, 0
if has[2] then y, t, c, s, z, n, x = unpack_('${counterFormat}', has[2]) end
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
local parts = fair and free or 1
if held or count >= limitRequests or free <= 0 or tokens * parts > ARGV[6] - t or total * parts > ARGV[7] - c then
  ${decided}
end

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
if other then call('HDEL', account, otherField) end
if fresh then call('PEXPIRE', account, 172800000) end
return {1, 0, cap, tokens, total, y, count + 1, 60000, t, c, n, now, s, z}
`)

/**
 * ARGV 3…: id, tokens, cost, record, 1 = it may have a checkpoint. Replies {1, entry id or '', y, t, c, n, now, s, z}, {2, '', …}
 * where there was nothing to settle, {-1} under another epoch. The time is empty where the entry's id tells it.
 */
export const settleScript = script(`${plain}
local now, id, tokens, cost = ARGV[2], ARGV[3], ARGV[4] - 0, ARGV[5] - 0
local lease = 'l:' .. id
local has = call('HMGET', account, 'e', 'm', lease)
if has[1] ~= epoch or not has[2] then return {-1} end
local y, t, c, s, z, n, x = unpack_('${counterFormat}', has[2])
local entry, status = '', 2
if has[3] then
  local reserved, reservedCost, leaseDay = string.match(has[3], '^%d+:(%d+):(%d+):%d+:(%d+)$')
  n = n - 1
  if leaseDay - y == 0 then
    local usedTokens, usedCost = tokens, cost
    if usedTokens - reserved > 0 then usedTokens = reserved end
    if usedCost - reservedCost > 0 then usedCost = reservedCost end
    t, c, s, z = t - reserved + usedTokens, c - reservedCost + usedCost, s + usedTokens, z + usedCost
  elseif y == -1 then
    ${helpers}${knowing}
    call('HSET', account, 'u:' .. id, whole(tokens) .. ':' .. whole(cost) .. ':' .. leaseDay)
    settledUnread(tokens, cost, tonumber(leaseDay))
  end
  call('HSET', account, 'm', struct.pack('${counterFormat}', y, t, c, s, z, n, x))
  if ARGV[7] == '1' then call('HDEL', account, lease, 'p:' .. id, 'o:' .. id) else call('HDEL', account, lease) end
  entry, status = call('XADD', KEYS[3], '*', 'r', ARGV[6]), 1
else
  local over = call('HGET', account, 'g:' .. id)
  if now == '' then
    local time = call('TIME')
    now = time[1] * 1000 + math.floor(time[2] / 1000)
  end
  if over then
    ${helpers}${knowing}
    local leaseDay, recorded = match(over, '^(%d+):(%d)$')
    leaseDay = tonumber(leaseDay)
    call('HDEL', account, 'g:' .. id)
    if recorded == '0' then
      if leaseDay == y then
        t, c, s, z = t + tokens, c + cost, s + tokens, z + cost
        setCounters(y, t, c, s, z, n, x)
      elseif y == -1 then
        settledUnread(tokens, cost, leaseDay)
      end
      entry, status = call('XADD', KEYS[3], '*', 'r', ARGV[6]), 1
    end
  end
end
return {status, entry, y, t, c, n, now, s, z}
`)

/** ARGV 3…: id, tokens, cost, limits of both. Replies {1, tokens, cost, t, c}, {0} where it is too much, {-1}. */
export const raiseScript = script(`${common}${guard}
local lease = 'l:' .. ARGV[3]
local has = call('HMGET', account, 'e', 'm', lease)
if has[1] ~= epoch then return {-1} end
if not has[3] then return {0} end
local expiry, tokens, cost, cap, leaseDay = match(has[3], '^(%d+):(%d+):(%d+):(%d+):(%d+)$')
local y, t, c, s, z, n, x = countersOf(has[2])
if tonumber(leaseDay) ~= y then return {0} end
tokens, cost = tonumber(tokens), tonumber(cost)
local moreTokens, moreCost = max(0, tonumber(ARGV[4]) - tokens), max(0, tonumber(ARGV[5]) - cost)
t, c = t + moreTokens, c + moreCost
if t > tonumber(ARGV[6]) or c > tonumber(ARGV[7]) then return {0} end
tokens, cost = tokens + moreTokens, cost + moreCost
setCounters(y, t, c, s, z, n, x)
call('HSET', account, lease, expiry .. ':' .. whole(tokens) .. ':' .. whole(cost) .. ':' .. cap .. ':' .. leaseDay)
return {1, tokens, cost, t, c}
`)

/**
 * KEYS 3: the set of accounts with checkpoints. ARGV 3…: lease in ms, account id, gateway id, then pairs of an id and its
 * checkpoint (`tokens:cost:record`, empty = none that is new). Leases that are gone stay gone. Replies {1} or {-1}.
 */
export const renewScript = script(`${common}${guard}
if call('HGET', account, 'e') ~= epoch then return {-1} end
local expiry = whole(now + tonumber(ARGV[3]))
local checkpointed = false
for i = 6, #ARGV, 2 do
  local id = ARGV[i]
  local rest = call('HGET', account, 'l:' .. id)
  if rest then
    rest = match(rest, '^%d+(:.*)$')
    if ARGV[i + 1] == '' then
      call('HSET', account, 'l:' .. id, expiry .. rest)
    else
      call('HSET', account, 'l:' .. id, expiry .. rest, 'p:' .. id, ARGV[i + 1], 'o:' .. id, ARGV[5])
      checkpointed = true
    end
  end
end
if checkpointed then call('ZADD', KEYS[3], 'LT', expiry, ARGV[4]) end
return {1}
`)

/**
 * KEYS 1: the set of accounts with checkpoints. ARGV 1: the time (empty = the server's own). Replies those of which a lease
 * may have run out, a hundred at most; whoever asks within a second is not told them too.
 */
export const dueScript = script(`
local now = tonumber(ARGV[1])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, 100)
for _, account in ipairs(due) do redis.call('ZADD', KEYS[1], 'XX', string.format('%.0f', now + 1000), account) end
return due
`)

/**
 * Takes back what ran out on an account that nobody asks about. KEYS 4: the set of accounts with checkpoints. ARGV 3…:
 * account id, and the gateways that are alive (none = not known). Where Redis does not decide, or not under the caller's
 * epoch, only what dead gateways have left is settled.
 */
export const sweepScript = script(`${common}${knowing}${renewEpoch}
local y, t, c, s, z, n, x
${expire}
local decides = epoch ~= '' and call('GET', KEYS[2]) == epoch
local known = call('HGET', account, 'e')
if decides and known and known ~= epoch then renewEpoch() end
local has = call('HMGET', account, 'e', 'm')
y, t, c, s, z, n, x = countersOf(has[2])
if has[1] and decides then
  expire()
elseif has[1] and #ARGV > 3 then
  local living = {}
  for i = 4, #ARGV do living[ARGV[i]] = true end
  expire(living)
end
if x > 0 then call('ZADD', KEYS[4], whole(max(x, now + 1000)), ARGV[3]) else call('ZREM', KEYS[4], ARGV[3]) end
return {1}
`)

/**
 * What one gateway knows of an account, under an epoch that is being made (KEYS 2: its announcement). ARGV 3…: lease in
 * ms, and JSON: `gateway`, `leases` [id, tokens, cost, cap, day], `ages` of the last minute's admissions in ms, oldest first,
 * `waiting` [id, tokens, cost, day], `settled` [day, tokens, cost] of what it settled without Redis (empty = nothing). Of this gateway's leases those not named are gone, and those named are as new; one that
 * was settled to its checkpoint meanwhile stays so. Safe to repeat but for `ages`, which then count twice: never over.
 */
export const registerScript = script(`${common}${knowing}${renewEpoch}
if call('HGET', KEYS[2], 'id') ~= epoch then return {-1} end
local known = cjson.decode(ARGV[4])
if call('HGET', account, 'e') ~= epoch then renewEpoch() end
local expiry = whole(now + tonumber(ARGV[3]))
local y, t, c, s, z, n, x = countersOf(call('HGET', account, 'm'))
local open = {}
for _, lease in ipairs(known.leases) do open[lease[1]] = true end
local all = call('HGETALL', account)
for i = 1, #all, 2 do
  local id = sub(all[i], 3)
  if sub(all[i], 1, 2) == 'o:' and all[i + 1] == known.gateway and not open[id] then
    n = n - call('HDEL', account, 'l:' .. id)
    call('HDEL', account, all[i], 'p:' .. id)
  end
end
for _, lease in ipairs(known.leases) do
  local id = lease[1]
  if not match(call('HGET', account, 'g:' .. id) or '', ':1$') then
    n = n + call('HSET', account, 'l:' .. id, expiry .. ':' .. whole(lease[2]) .. ':' .. whole(lease[3]) .. ':' .. whole(lease[4]) .. ':' .. whole(lease[5]))
    call('HDEL', account, 'g:' .. id)
  end
end
if #known.ages > 0 then
  local times, log = {}, call('HGET', account, 'a') or ''
  for at = 1, #log, 4 do times[#times + 1] = now - (now - unpack_('<I4', log, at)) % 4294967296 end
  for _, age in ipairs(known.ages) do times[#times + 1] = now - age end
  table.sort(times)
  for i, time in ipairs(times) do times[i] = pack('<I4', time % 4294967296) end
  call('HSET', account, 'a', table.concat(times))
end
for _, used in ipairs(known.waiting) do
  if call('HDEL', account, 'l:' .. used[1]) == 1 then n = n - 1 end
  call('HDEL', account, 'p:' .. used[1], 'o:' .. used[1])
  call('HSET', account, 'u:' .. used[1], whole(used[2]) .. ':' .. whole(used[3]) .. ':' .. whole(used[4]))
end
if #known.settled > 0 then
  call('HSET', account, 'd:' .. known.gateway, whole(known.settled[1]) .. ':' .. whole(known.settled[2]) .. ':' .. whole(known.settled[3]))
end
expiry = tonumber(expiry)
setCounters(y, t, c, s, z, n, x > 0 and min(x, expiry) or expiry)
call('PEXPIRE', account, keepMs)
return {1}
`)

/**
 * What one gateway knows to be settled of accounts of a partition, ahead of an epoch that is being made. KEYS are their hashes
 * and the announcement. ARGV 3…: of each `day:tokens:cost`. Replies {1} or {-1}.
 */
export const remindScript = script(`${common}${knowing}
if call('HGET', KEYS[#KEYS], 'id') ~= epoch then return {-1} end
for i = 1, #KEYS - 1 do
  call('HSET', KEYS[i], 'k', most(call('HGET', KEYS[i], 'k'), ARGV[i + 2]))
  call('PEXPIRE', KEYS[i], keepMs)
end
return {1}
`)

/**
 * One gateway's sign of life in a partition. KEYS: epoch, gateways, announcement of the next epoch, usage stream. ARGV 3…: gateway id, a name for a next epoch, the epoch it has registered for ('' = none),
 * 1 = the present epoch must go (it handed out without Redis), gateways that it waits for (comma-separated), how long a
 * rebuild runs before gateways register, and how long it waits for silent ones, in ms.
 *
 * Replies {state, epoch, oldest entry id or '', gateways alive (comma-separated)}; state 1 = the epoch
 * stands, 0 = one is to be made, 2 = register for it now.
 */
export const beatScript = script(`${common}
local gateways, announced = KEYS[2], KEYS[3]
local me, minimum, patience = ARGV[3], tonumber(ARGV[8]), tonumber(ARGV[9])
-- A server that was restarted may have forgotten its last second, and a replica that took over its last moments.
local run = match(call('INFO', 'server'), 'run_id:(%x+)')
local stands = call('GET', KEYS[1])
if stands and (match(stands, '@(%x+)$') ~= run or ARGV[6] == '1') then
  call('DEL', KEYS[1])
  stands = false
end
call('HSET', gateways, me, whole(now))
local alive, all = {}, call('HGETALL', gateways)
for i = 1, #all, 2 do
  local age = now - tonumber(all[i + 1])
  if age < 3000 then alive[#alive + 1] = all[i] elseif age > 60000 then call('HDEL', gateways, all[i]) end
end
local state, name = 1, stands
if not stands then
  name = call('HGET', announced, 'id')
  if not name or match(name, '@(%x+)$') ~= run then
    name = ARGV[4] .. '@' .. run
    call('DEL', announced)
    call('HSET', announced, 'id', name, 'since', whole(now))
  end
  if ARGV[5] == name then call('HSET', announced, 'g:' .. me, 1) end
  local age = now - tonumber(call('HGET', announced, 'since'))
  state = age >= minimum and 2 or 0
  local complete = state == 2
  local awaited = table.concat(alive, ',')
  if age < patience then awaited = awaited .. ',' .. ARGV[7] end
  for gateway in string.gmatch(awaited, '[^,]+') do
    if call('HEXISTS', announced, 'g:' .. gateway) == 0 then complete = false end
  end
  if complete then
    call('SET', KEYS[1], name)
    call('DEL', announced)
    state = 1
  end
end
local oldest = call('XRANGE', KEYS[4], '-', '+', 'COUNT', 1)
return {state, name, oldest[1] and oldest[1][1] or '', table.concat(alive, ',')}
`)

export const meterScripts = [
  admitScript,
  settleScript,
  raiseScript,
  renewScript,
  dueScript,
  sweepScript,
  registerScript,
  remindScript,
  beatScript,
]
