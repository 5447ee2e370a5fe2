/**
 * The parts that the meter's scripts share. An account is one hash:
 *
 *   e          the epoch that it is valid under; under any other it counts as absent
 *   m          the counters, seven packed doubles, since every field and every decimal number costs time:
 *     y t c      UTC day, tokens and cost (1e-8 USD) of that day, reservations included
 *     s z        of t and c what is settled
 *     n x        open requests; no lease runs out before x, 0 = none is known
 *   a          admission times of the last minute, 32 bits each: a sliding log, exact
 *   b          the same above 1,000 per minute: pairs of a second's latest time and of all admissions until then; the first
 *              pair is only there to be subtracted; never over the limit, at most 1 s late
 *   l:<id>     a lease: expiry:tokens:cost:cap:day
 *   p:<id>     the latest checkpoint of that request: tokens:cost
 *   o:<id>     the gateway that wrote the checkpoint
 *   g:<id>     a lease that ran out: day:tokens:cost:1 if it was settled to its last checkpoint, which the counters of its day hold
 *              until the request's end is known; else day:0
 *
 * `scope-scripts.ts` describes the fields of scopes.
 *
 * KEYS are the hash and the epoch of its partition. ARGV begins with the caller's epoch and the time (empty = the server's own). Numbers are written with %.0f, since Lua's own format turns large ones into 1e+15.
 */
import { counterFormat } from '../../core/limits/redis.ts'
import { countScopes } from './scope-scripts.ts'

/** Milliseconds without requests after which an account's hash expires: longer than any lease or day. */
export const keepMs = 172_800_000

/** Returns a number in the form that the scripts expect. */
export const whole = (number: number) => String(Math.round(number))

/** Requires `account`. */
export const helpers = `
local call, floor, ceil, max, min = redis.call, math.floor, math.ceil, math.max, math.min
local match, sub, format, pack, unpack_ = string.match, string.sub, string.format, struct.pack, struct.unpack
local function whole(number) return format('%.0f', number) end
local function setCounters(...) call('HSET', account, 'm', pack('${counterFormat}', ...)) end
`

/** Start of the scripts that run beside requests. */
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

/** Continues only under the partition's current epoch. */
export const guard = `
if call('GET', KEYS[2]) ~= epoch then return {-1} end
`

/**
 * Ends expired leases: releases their reservations, and counts the usage of their last checkpoint. With
 * `living` (instance names), ends only leases of other instances, which cannot renew them under an older epoch.
 */
export const expire = `
${countScopes}
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
        local usedTokens, usedCost = 0, 0
        local checkpoint = call('HGET', account, 'p:' .. id)
        if checkpoint then
          usedTokens, usedCost = match(checkpoint, '^(%d+):(%d+)$')
          usedTokens, usedCost = tonumber(usedTokens), min(cost, tonumber(usedCost))
        end
        if leaseDay == y then
          t, c, s, z = t - tokens + usedTokens, c - cost + usedCost, s + usedTokens, z + usedCost
        end
        n = n - 1
        countScopes(id, leaseDay, usedTokens - tokens, usedCost - cost, usedTokens, usedCost, -1)
        call('HDEL', account, all[i], 'p:' .. id, 'o:' .. id)
        call('HSET', account, 'g:' .. id, whole(leaseDay) .. ':' .. (checkpoint and whole(usedTokens) .. ':' .. whole(usedCost) .. ':1' or '0'))
      end
    elseif kind == 'g:' and tonumber(match(all[i + 1], '^%d+')) < day - 1 then
      call('HDEL', account, all[i], 'k:' .. id)
    end
  end
  x = nextExpiry or 0
  setCounters(y, t, c, s, z, n, x)
end
`
