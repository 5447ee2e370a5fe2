/** Circuit breaker per model, as a pure function. An open circuit expires and then allows one probe. */
import type { HealthState } from '../core/chat/attempts.ts'

/**
 * `soft_failure`: the request failed (5xx, timeout, truncation). `unhealthy`: the upstream reports that it cannot serve
 * (503). `cooling`: it requires a pause (429). `switched_off`: it rejects the gateway's credential or account.
 */
export type HealthOutcome = 'ok' | 'soft_failure' | 'unhealthy' | 'cooling' | 'switched_off'

/** Times are milliseconds of a monotonic clock. */
export type CircuitState = {
  /** Latest outcomes, newest last; true = failed. At most `maximumRecent`. */
  readonly recent: readonly boolean[]
  readonly consecutiveFailures: number
  /** No attempts before this time. After it one probe, unless it was only a cooldown. */
  readonly closedUntil: number
  readonly closure: 'none' | 'cooling' | 'broken'
  /** Duration of the next open period. */
  readonly backoffMs: number
  /** End of the pause that the upstream requested; 0 = none. */
  readonly askedToWaitUntil: number
  /** A probe counts as running until this time, so that a lost probe does not block the next one. */
  readonly probeUntil: number
  readonly firstTokenMs: number | null
}

const maximumRecent = 20
/** With fewer outcomes an error rate is not meaningful. */
const minimumForRate = 10
const failuresInARow = 3
const firstBackoffMs = 2_000
const maximumBackoffMs = 60_000
const probeMs = 30_000
/** Weight of the newest first-token time in the moving average. */
const newestWeight = 0.2

export const initialCircuit: CircuitState = {
  recent: [],
  consecutiveFailures: 0,
  closedUntil: 0,
  closure: 'none',
  backoffMs: firstBackoffMs,
  askedToWaitUntil: 0,
  probeUntil: 0,
  firstTokenMs: null,
}

/**
 * Returns the state after an outcome at `now`. `retryAfterMs` is the pause that the upstream requested, capped at 60 s.
 */
export function applyOutcome(
  health: CircuitState,
  outcome: HealthOutcome,
  now: number,
  retryAfterMs: number | null = null,
): CircuitState {
  switch (outcome) {
    case 'ok':
      if (isSpotless(health)) return health
      // A successful probe clears the history; otherwise old failures would open the circuit again at the next one.
      return health.closure === 'broken'
        ? { ...initialCircuit, recent: [false], firstTokenMs: health.firstTokenMs }
        : {
            ...health,
            recent: recently(health, false),
            consecutiveFailures: 0,
            backoffMs: firstBackoffMs,
            closure: closureAt(health, now),
          }
    case 'soft_failure': {
      const failed = { ...health, recent: recently(health, true), consecutiveFailures: health.consecutiveFailures + 1 }
      return health.closure === 'broken' || isBroken(failed) ? failedAt(failed, now) : failed
    }
    case 'unhealthy':
      return failedAt(
        { ...health, recent: recently(health, true), consecutiveFailures: health.consecutiveFailures + 1 },
        now,
      )
    case 'switched_off':
      return closed({ ...health, recent: recently(health, true) }, now, maximumBackoffMs)
    case 'cooling': {
      const until = now + Math.min(maximumBackoffMs, Math.max(0, retryAfterMs ?? firstBackoffMs))
      // A 429 does not end an open period caused by failures.
      if (health.closure === 'broken')
        return { ...health, closedUntil: Math.max(until, health.closedUntil), probeUntil: 0 }
      return {
        ...health,
        closure: 'cooling',
        closedUntil: Math.max(until, health.closedUntil),
        askedToWaitUntil: retryAfterMs === null ? health.askedToWaitUntil : until,
      }
    }
    default:
      return outcome satisfies never
  }
}

/** Returns the state with a first-token time added to its moving average. */
export function afterFirstToken(health: CircuitState, firstTokenMs: number): CircuitState {
  const { firstTokenMs: average } = health
  return {
    ...health,
    firstTokenMs: average === null ? firstTokenMs : average + newestWeight * (firstTokenMs - average),
  }
}

/** Returns whether the model may be called now. `probe` = only by this request, whose outcome decides. */
export function circuitDecision(health: CircuitState, now: number): 'yes' | 'probe' | 'no' {
  if (health.closure === 'none') return 'yes'
  if (now < health.closedUntil) return 'no'
  if (health.closure === 'cooling') return 'yes'
  return now < health.probeUntil ? 'no' : 'probe'
}

const skipReasons = ['circuit_open', 'cooldown', 'provider_disabled'] as const
/**
 * Why a model is skipped now. `circuit_open`: it failed and its next probe is not due. `cooldown`: it answered 429 and
 * its wait has not ended. `provider_disabled`: its provider rejected the credential or account.
 */
export type SkipReason = (typeof skipReasons)[number]

/**
 * Returns why a model is skipped now; null = it may be called. `isNamed` = the client requested this model: it is then
 * skipped only if several failures opened its circuit, or during a pause that the upstream itself requested. One failure
 * stops only requests that can use another model.
 */
export function skipReasonAt(health: CircuitState, now: number, isNamed: boolean): SkipReason | null {
  if (circuitDecision(health, now) !== 'no') return null
  if (health.closure === 'cooling') return isNamed && now >= health.askedToWaitUntil ? null : 'cooldown'
  return isNamed && !isBroken(health) ? null : 'circuit_open'
}

/** Returns the state with a running probe. */
export function withProbe(health: CircuitState, now: number): CircuitState {
  return { ...health, probeUntil: now + probeMs }
}

/** Returns the state after a probe that ended without an outcome: the next attempt is the probe. */
export function withoutProbe(health: CircuitState): CircuitState {
  return health.probeUntil === 0 ? health : { ...health, probeUntil: 0 }
}

/** Returns the state that the models list shows: unhealthy = not called; degraded = probed, or failing occasionally. */
export function stateAt(health: CircuitState, now: number): HealthState {
  if (health.closure === 'broken') return now < health.closedUntil ? 'unhealthy' : 'degraded'
  if (closureAt(health, now) === 'cooling' || health.consecutiveFailures > 0) return 'degraded'
  return failureRate(health) > 0.2 && health.recent.length >= minimumForRate ? 'degraded' : 'healthy'
}

/** A failure reported while the circuit is open belongs to no probe, so it does not extend the wait. */
function failedAt(health: CircuitState, now: number): CircuitState {
  return health.closure === 'broken' && now < health.closedUntil ? health : closed(health, now, health.backoffMs)
}

function closed(health: CircuitState, now: number, forMs: number): CircuitState {
  return {
    ...health,
    closure: 'broken',
    closedUntil: now + forMs,
    backoffMs: Math.min(maximumBackoffMs, forMs * 2),
    probeUntil: 0,
  }
}

const closureAt = (health: CircuitState, now: number) =>
  health.closure === 'cooling' && now >= health.closedUntil ? 'none' : health.closure

/** Returns true if no outcome could improve the state. */
const isSpotless = ({ recent, consecutiveFailures, closure, backoffMs }: CircuitState) =>
  recent.length === maximumRecent &&
  closure === 'none' &&
  consecutiveFailures === 0 &&
  backoffMs === firstBackoffMs &&
  !recent.includes(true)

const isBroken = (health: CircuitState) =>
  health.consecutiveFailures >= failuresInARow || (health.recent.length >= minimumForRate && failureRate(health) > 0.5)

/** Returns the share of failures among the latest outcomes, 0–1; 0 = none are known. */
export function failureRate({ recent }: Pick<CircuitState, 'recent'>): number {
  let failures = 0
  for (const failed of recent) if (failed) failures++
  return recent.length === 0 ? 0 : failures / recent.length
}

const recently = (health: CircuitState, failed: boolean) => [...health.recent, failed].slice(-maximumRecent)
