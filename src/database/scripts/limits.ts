/**
 * Rate limiters in Redis, one key per name. KEYS[1] is the name's state; ARGV begins with the time (empty = the
 * server's own). Replies the milliseconds to wait, 0 = the request was counted. The rules are those of
 * `core/limits/token-buckets.ts` and `core/limits/sliding-windows.ts`.
 */
import { script } from '../../core/limits/script.ts'

const begin = `
local call, key, now, first, second = redis.call, KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
if not now then
  local time = call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
`

/** ARGV 2…: milliseconds per refill, burst. The key holds when the bucket is full again. */
export const bucketScript = script(`${begin}
local interval, burst = first, second
local missing = math.min(math.max(0, (tonumber(call('GET', key)) or 0) - now), burst * interval)
local wait = math.max(0, math.ceil(missing - (burst - 1) * interval))
if wait == 0 then
  call('SET', key, string.format('%.17g', now + missing + interval), 'PX', math.ceil(missing + interval))
end
return wait
`)

/**
 * ARGV 2…: allowed requests, milliseconds of the window. The key lists the times of the last requests, oldest first.
 */
export const windowScript = script(`${begin}
local allowed, window = first, second
now = math.max(now, tonumber(call('LINDEX', key, -1)) or 0)
local wait = (tonumber(call('LINDEX', key, -allowed)) or 0) + window - now
if wait > 0 then return wait end
call('RPUSH', key, string.format('%.0f', now))
call('LTRIM', key, -allowed, -1)
call('PEXPIRE', key, window)
return 0
`)

export const limitScripts = [bucketScript, windowScript]
