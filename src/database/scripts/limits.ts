/**
 * Limits by name, one key each. KEYS[1] is what the name has had; ARGV begins with the time (empty = the server's own). They
 * reply the milliseconds to wait, 0 = one was taken. The rules are those of `core/named-buckets.ts` and
 * `core/named-windows.ts`.
 */
import { script } from '../../core/limits/script.ts'

const begin = `
local call, key, now, first, second = redis.call, KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
if not now then
  local time = call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
`

/** ARGV 2…: milliseconds that the refill of one takes, burst. The key holds when the bucket will be full again. */
export const bucketScript = script(`${begin}
local interval, burst = first, second
local missing = math.min(math.max(0, (tonumber(call('GET', key)) or 0) - now), burst * interval)
local wait = math.max(0, math.ceil(missing - (burst - 1) * interval))
if wait == 0 then
  call('SET', key, string.format('%.17g', now + missing + interval), 'PX', math.ceil(missing + interval))
end
return wait
`)

/** ARGV 2…: how many are allowed, milliseconds of the window. The key lists when the last of them were taken, oldest first. */
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
