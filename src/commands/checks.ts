/** Results of `doctor`: one line for each check, with the action that removes a problem. */

import { getEviction } from '../database/redis.ts'

type CheckState = 'ok' | 'warning' | 'error'

export type Check = {
  readonly name: string
  readonly state: CheckState
  readonly detail: string
  /** What to do; null if nothing. */
  readonly action: string | null
}

export const okCheck = (name: string, detail: string): Check => ({ name, state: 'ok', detail, action: null })

export function warningCheck(name: string, detail: string, action: string): Check {
  return { name, state: 'warning', detail, action }
}

export function failedCheck(name: string, detail: string, action: string): Check {
  return { name, state: 'error', detail, action }
}

const mebibyte = 1_048_576
const lowDiskBytes = 1_024 * mebibyte
const minimumDiskBytes = 100 * mebibyte
/** `clock_offset_changed` reports the same difference while the gateway runs. */
const clockToleranceMs = 1_000

/** Judges the free space under the data folder, where usage records wait while Postgres is unavailable. */
export function diskCheck(folder: string, freeBytes: number): Check {
  const detail = `${Math.floor(freeBytes / mebibyte)} MiB free in ${folder}`
  const action = 'Free disk space, or set GATEWAY_DATA_DIR to a larger disk.'
  if (freeBytes < minimumDiskBytes) return failedCheck('disk', detail, action)
  return freeBytes < lowDiskBytes ? warningCheck('disk', detail, action) : okCheck('disk', detail)
}

/** Judges the number of usage records that Postgres rejects. */
export function setAsideCheck(records: number): Check {
  const name = 'usage records'
  if (records === 0) return okCheck(name, 'none set aside')
  return failedCheck(
    name,
    `${records} set aside: Postgres rejects their values, and they are not billed`,
    'Correct the cause, which usage_record_rejected in the log names. Each start ships them again.',
  )
}

/**
 * Judges the difference between this machine's clock and that of a store, in milliseconds. The round trip bounds the
 * error of the measurement.
 */
export function clockCheck(store: string, differenceMs: number, roundTripMs: number): Check {
  const name = `clock (${store})`
  const detail = `${Math.abs(Math.round(differenceMs))} ms ${differenceMs < 0 ? 'behind' : 'ahead of'} this machine`
  if (Math.abs(differenceMs) <= clockToleranceMs + roundTripMs / 2) return okCheck(name, detail)
  return warningCheck(name, detail, 'Synchronize the clocks of both machines with NTP.')
}

/** Judges the version of a store against the oldest one that the tests have run with. */
export function storeVersionCheck(name: string, found: string, tested: string): Check {
  return isOlder(found, tested)
    ? warningCheck(name, found, `Upgrade to ${tested} or later: older versions are not tested.`)
    : okCheck(name, found)
}

/** Judges the running Bun against `engines` of `package.json`, such as `>=1.4.5`. */
export function bunCheck(found: string, engines: string): Check {
  return Bun.semver.satisfies(found, engines)
    ? okCheck('bun', found)
    : failedCheck('bun', `${found}; needed: ${engines}`, 'Upgrade Bun: bun upgrade.')
}

/** Judges the answer of `INFO memory`: a Redis that evicts keys loses counters, which are then rebuilt from Postgres. */
export function redisMemoryCheck(info: string): Check {
  const field = (name: string) => new RegExp(`^${name}:(.*)$`, 'm').exec(info)?.[1]?.trim() ?? ''
  const isBounded = field('maxmemory') !== '0' && field('maxmemory') !== ''
  const detail = `maxmemory ${isBounded ? field('maxmemory_human') : 'unlimited'}, ${field('maxmemory_policy') || 'policy unknown'}`
  return getEviction(info) === null
    ? okCheck('redis memory', detail)
    : warningCheck('redis memory', detail, 'Set maxmemory-policy noeviction: an evicted counter must be rebuilt.')
}

/** Judges a failed call to a provider by the kind of its failure. */
export function providerFailureCheck(name: string, kind: string, detail: string): Check {
  const text = detail === '' ? kind : `${kind}: ${detail}`
  switch (kind) {
    case 'empty_answer':
      return okCheck(name, 'answered; the output was shorter than its reasoning')
    case 'rate_limited':
    case 'overloaded':
      return warningCheck(name, text, 'Retry later. If it stays, raise the limit at the provider.')
    case 'credential_refused':
      return failedCheck(name, text, 'Replace the API key, or allow it to use the model.')
    case 'quota_exhausted':
      return failedCheck(name, text, 'Add credit at the provider.')
    case 'model_missing':
      return failedCheck(name, text, 'Give the key access to the model, or remove the model from the configuration.')
    default:
      return failedCheck(name, text, 'Check the base URL, the network and the status page of the provider.')
  }
}

function isOlder(text: string, other: string): boolean {
  return Bun.semver.order(threeParts(text), threeParts(other)) < 0
}

/** Returns a version as three numbers: `17.2 (Debian)` → `17.2.0`. */
function threeParts(version: string): string {
  const [major = '0', minor = '0', patch = '0'] = /\d+(\.\d+)*/.exec(version)?.[0].split('.') ?? []
  return `${major}.${minor}.${patch}`
}
