/**
 * What the meter's scripts have in common. An account is one hash:
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

/** How the seven counters are packed, as Redis' `struct` has it. */
export const counterFormat = '<ddddddd'

/** How long nobody must have asked about an account for its hash to go: no lease and no day is older. */
export const keepMs = 172_800_000

/** A number as the scripts are told it. */
export const whole = (number: number) => String(Math.round(number))

/** Needs `account`. */
export const helpers = `
local call, floor, ceil, max, min = redis.call, math.floor, math.ceil, math.max, math.min
local match, sub, format, pack, unpack_ = string.match, string.sub, string.format, struct.pack, struct.unpack
local function whole(number) return format('%.0f', number) end
local function setCounters(...) call('HSET', account, 'm', pack('${counterFormat}', ...)) end
local function countersOf(text)
  if not text then return -1, 0, 0, 0, 0, 0, 0 end
  return unpack_('${counterFormat}', text)
end
local keepMs = ${keepMs}
`

/** The beginning of the scripts that no request waits for. */
export const common = `
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
export const knowing = `
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

/** Only under the epoch that stands. */
export const guard = `
if call('GET', KEYS[2]) ~= epoch then return {-1} end
`

/**
 * Begins a hash under a new epoch. Leases with a checkpoint go on in it: their gateways may be dead, and could not register
 * them again. So does what was settled to one: a gateway that was only asleep must not settle it once more.
 */
export const renewEpoch = `
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
export const expire = `
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
          t = t - tokens + tonumber(usedTokens)
          c = c - cost + min(cost, tonumber(usedCost))
          s = s + tonumber(usedTokens)
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
