/**
 * Health of each upstream as seen by this process, and its retry budget. In memory: another process learns the same
 * within a few requests, and a restart begins with closed circuits.
 */

import type { AttemptFailure, HealthState } from '../core/chat/attempts.ts'
import type { RoutingFigures } from '../core/models/models.ts'
import type { Clock } from '../core/ports.ts'
import {
  afterFirstToken,
  applyOutcome,
  type CircuitState,
  circuitDecision,
  failureRate,
  type HealthOutcome,
  initialCircuit,
  type SkipReason,
  skipReasonAt,
  stateAt,
  withoutProbe,
  withProbe,
} from './circuit-breaker.ts'
import { FirstTokenTimes, lateAfterMs } from './hedging.ts'
import {
  type AttemptSample,
  addAttemptSample,
  blendWithCatalog,
  emptyStats,
  type LiveModelStats,
} from './live-model-stats.ts'
import type { Figures } from './scoring.ts'

type HealthReport = {
  readonly outcome: HealthOutcome
  /** Kind of the failure; absent = a success, or unknown. */
  readonly cause?: AttemptFailure
  /** Milliseconds of the pause that an upstream requested. */
  readonly retryAfterMs?: number | null
  readonly firstTokenMs?: number | null
  /** That time as a multiple of the time that the model's figures are about; absent = 1. */
  readonly firstTokenScale?: number
  readonly tokensPerSecond?: number | null
}

/** Last outcomes of a provider's attempts in epoch milliseconds; null = none since the start. */
type ProviderActivity = {
  lastSuccessAt: number | null
  lastFailure: { readonly kind: AttemptFailure; readonly at: number } | null
}

export type HealthEntry = {
  readonly key: string
  readonly state: HealthState
  /** Epoch milliseconds when it entered this state; null = it never had another one. */
  readonly since: number | null
  /** Cause of its last failure, or of its provider's; null = none is known. */
  readonly cause: AttemptFailure | null
  /** Epoch milliseconds from which requests may call it again; null = they may now. */
  readonly retryAt: number | null
  /** Share of failures among the latest attempts, 0–1. */
  readonly failureRate: number
  /** Moving average; null = no measurement. */
  readonly firstTokenMs: number | null
}

/** Whether a model may be called now: not during a pause, and not while another request's probe is running. */
export type Standing = { readonly state: HealthState; readonly mayTry: boolean }

/** While the circuits of a model are closed. */
const closedStandings = {
  healthy: { state: 'healthy', mayTry: true },
  degraded: { state: 'degraded', mayTry: true },
  unhealthy: { state: 'unhealthy', mayTry: true },
} as const satisfies Record<HealthState, Standing>

/** Keys are `provider/model`, and `provider/model#credential` if a provider has several credentials. */
export type HealthTracker = {
  report(key: string, report: HealthReport): void
  /** Changes nothing. */
  getStanding(key: string): Standing
  /**
   * Returns why the model is skipped now; null = it may be called. `isNamed` as in `models/circuit-breaker.ts`.
   */
  skipReason(key: string, isNamed: boolean): SkipReason | null
  /**
   * Reports the start of an attempt. In a half-open circuit it is the probe until its outcome is reported, for at most
   * 30 s. Returns true if it is.
   */
  beginAttempt(key: string): boolean
  /** Ends a probe without an outcome, so that the next attempt is one. */
  endProbe(key: string): void
  /** Returns after how many milliseconds a first content is late. `typicalMs`: of the catalog. */
  lateAfterMs(key: string, typicalMs: number): number
  /** Notes an attempt that was canceled after `waitedMs` without content. Changes no health. */
  waited(key: string, waitedMs: number): void
  /** Returns the moving average of milliseconds to the first token; null = no measurement. */
  firstTokenMs(key: string): number | null
  /** Returns a model's published figures combined with recent measurements; null = no measurement. */
  findFigures(key: string, published: RoutingFigures): Figures | null
  /** Returns the displayed state of a model: its own, or `unhealthy` while its provider's credential is rejected. */
  getEntry(key: string): HealthEntry
  /** Credentials may have been replaced: those that were rejected are tried again. */
  retryCredentials(): void
  /** Returns when the provider last answered and failed. */
  getActivity(provider: string): Readonly<ProviderActivity>
  /** Returns every tracked model. */
  list(): readonly HealthEntry[]
  /** Counts a request as active until its `end`, which may be called twice. */
  beginRequest(): { end(): void }
  /**
   * Reserves a second or third attempt from the retry budget (a fifth of the active requests, at least three); null =
   * exhausted.
   */
  beginRetry(key: string): { end(): void } | null
}

type Line = {
  health: CircuitState
  /** Displayed state at the last update, and since when in epoch milliseconds; null = it never had another one. */
  state: HealthState
  since: number | null
  /** Monotonic milliseconds of the last update. */
  seenAt: number
  live: LiveModelStats | null
  /** Last blended figures, from these published ones, at this time; null = the measurements have changed since. */
  blended: { readonly figures: Figures; readonly published: RoutingFigures; readonly at: number } | null
  /** Kind of the last failure. */
  cause: AttemptFailure | null
  firstTokens: FirstTokenTimes | null
  /** State of its credential; null for a credential itself. */
  readonly provider: Line | null
}

const noActivity: Readonly<ProviderActivity> = { lastSuccessAt: null, lastFailure: null }

/** Measurements fade by 0.02% in this time, which changes no choice, and rankings are worked out for each change. */
const blendedForMs = 1_000
const retriesPerRequest = 0.2
const minimumRetries = 3
/** Keys come from the small catalog; this bounds the effect of a defect. */
const maximumKeys = 10_000

/** Creates a tracker in which all models are healthy. */
export function createHealthTracker({ clock }: { readonly clock: Pick<Clock, 'now' | 'monotonic'> }): HealthTracker {
  const lines = new Map<string, Line>()
  /** Of keys with a credential: accounts bring and replace theirs, and an old one must take no place of a model. */
  const ofCredentials = new Map<string, Line>()
  const everyLine = function* () {
    yield* lines.values()
    yield* ofCredentials.values()
  }
  const activity = new Map<string, ProviderActivity>()
  let activeRequests = 0
  let activeRetries = 0

  const unheard = (key: string): Line => {
    const provider = key.includes('/') ? getLine(providerKey(key)) : null
    if (provider !== null) bringUpToDate(provider)
    return {
      health: initialCircuit,
      state: provider?.state === 'unhealthy' ? 'unhealthy' : 'healthy',
      since: provider?.since ?? null,
      seenAt: clock.monotonic(),
      live: null,
      blended: null,
      cause: null,
      firstTokens: null,
      provider,
    }
  }
  const findLine = (key: string) => lines.get(key) ?? ofCredentials.get(key)
  const getLine = (key: string): Line => {
    const line = findLine(key)
    if (line !== undefined) return line
    const fresh = unheard(key)
    if (key.includes('#')) {
      if (ofCredentials.size >= maximumKeys) ofCredentials.clear()
      ofCredentials.set(key, fresh)
    } else if (lines.size < maximumKeys) lines.set(key, fresh)
    return fresh
  }
  /** A closed circuit does not depend on time, and reading the clock for every model of every request is expensive. */
  const timeFor = ({ closure }: CircuitState) => (closure === 'none' ? 0 : clock.monotonic())
  const stateNow = ({ health, provider }: Line): HealthState => {
    return provider !== null && stateAt(provider.health, timeFor(provider.health)) === 'unhealthy'
      ? 'unhealthy'
      : stateAt(health, timeFor(health))
  }
  /**
   * Updates the displayed state and when it was entered. A state changes by reports, around which this is called, and
   * by time when a pause ends, whose exact moment is known even if the update is late.
   */
  const bringUpToDate = (line: Line) => {
    const { health, provider, seenAt } = line
    // Nothing is closed, the usual case: no past moment must be computed.
    if (isClosed(line)) return enter(line, stateAt(health, 0), 0)
    const now = clock.monotonic()
    line.seenAt = now
    const ends = [health.closedUntil, provider?.health.closedUntil ?? 0].filter(end => end > seenAt && end < now)
    for (const at of [...ends.sort((end, other) => end - other), now]) {
      const isDisabled = provider !== null && stateAt(provider.health, at) === 'unhealthy'
      enter(line, isDisabled ? 'unhealthy' : stateAt(health, at), now - at)
    }
  }
  const enter = (line: Line, state: HealthState, agoMs: number) => {
    if (state === line.state) return
    line.state = state
    line.since = clock.now() - agoMs
  }
  const update = (line: Line, change: (health: CircuitState) => CircuitState) => {
    const changed = change(line.health)
    if (changed === line.health) return
    const bringAllUpToDate = () => {
      bringUpToDate(line)
      // A credential's state is displayed for all models of the provider.
      if (line.provider === null) for (const item of everyLine()) if (item.provider === line) bringUpToDate(item)
    }
    bringAllUpToDate()
    line.health = changed
    bringAllUpToDate()
  }
  const take = (line: Line, measured: AttemptSample, outcome: HealthOutcome, now: number) => {
    // A model with an open circuit that also requests a pause has failed once.
    if (outcome === 'cooling' && line.health.closure === 'broken') return
    line.live ??= emptyStats(now)
    addAttemptSample(line.live, measured, now)
    line.blended = null
  }
  /** Returns the notes on a provider. Beyond the maximum number they are not kept. */
  const activityFor = (key: string): ProviderActivity => {
    const provider = providerKey(key)
    // Own keys of accounts say nothing about those of the operator, and no page shows them.
    if (provider.includes('#')) return { ...noActivity }
    let known = activity.get(provider)
    if (known === undefined) {
      known = { ...noActivity }
      if (activity.size < maximumKeys) activity.set(provider, known)
    }
    return known
  }
  const mayAsk = ({ health }: Line) => circuitDecision(health, timeFor(health)) !== 'no'
  const probe = (line: Line) => {
    const now = clock.monotonic()
    if (circuitDecision(line.health, now) !== 'probe') return false
    line.health = withProbe(line.health, now)
    return true
  }
  const noteFirstToken = (line: Line, firstTokenMs: number, now: number) => {
    line.firstTokens ??= new FirstTokenTimes(now)
    line.firstTokens.add(firstTokenMs, now)
  }
  const findSkipReason = ({ health, provider }: Line, isNamed: boolean): SkipReason | null => {
    if (provider !== null && !mayAsk(provider)) return 'provider_disabled'
    return skipReasonAt(health, timeFor(health), isNamed)
  }
  const getEntry = (key: string): HealthEntry => {
    const line = getLine(key)
    bringUpToDate(line)
    const { state, since, health, provider } = line
    const { cause, health: shown } = provider !== null && !mayAsk(provider) ? provider : line
    const waitMs = shown.closure === 'none' ? 0 : shown.closedUntil - clock.monotonic()
    return {
      key,
      state,
      since,
      cause,
      retryAt: waitMs > 0 ? clock.now() + waitMs : null,
      failureRate: failureRate(shown),
      firstTokenMs: health.firstTokenMs,
    }
  }

  return {
    report(key, report) {
      const {
        outcome,
        cause,
        retryAfterMs = null,
        firstTokenMs = null,
        firstTokenScale = 1,
        tokensPerSecond = null,
      } = report
      if (outcome === 'ok') activityFor(key).lastSuccessAt = clock.now()
      else if (cause !== undefined) activityFor(key).lastFailure = { kind: cause, at: clock.now() }
      const now = clock.monotonic()
      const line = getLine(key)
      if (cause !== undefined) (outcome === 'switched_off' ? (line.provider ?? line) : line).cause = cause
      if (firstTokenMs !== null) noteFirstToken(line, firstTokenMs, now)
      const usualMs = firstTokenMs === null ? null : firstTokenMs / firstTokenScale
      take(line, { failed: outcome !== 'ok', firstTokenMs: usualMs, tokensPerSecond }, outcome, now)
      // A rejected credential affects all of the provider's models, and a response from one confirms it for all.
      if (outcome === 'switched_off') return update(line.provider ?? line, health => applyOutcome(health, outcome, now))
      if (outcome === 'ok' && line.provider !== null) update(line.provider, () => initialCircuit)
      update(line, health => {
        const after = applyOutcome(health, outcome, now, retryAfterMs)
        return firstTokenMs === null ? after : afterFirstToken(after, firstTokenMs)
      })
    },
    retryCredentials() {
      for (const line of everyLine()) if (line.provider === null) update(line, () => initialCircuit)
    },
    getActivity: provider => activity.get(provider) ?? noActivity,
    getStanding(key) {
      const line = lines.get(key) ?? getLine(key)
      if (isClosed(line)) return closedStandings[line.state]
      return { state: stateNow(line), mayTry: findSkipReason(line, false) === null }
    },
    skipReason: (key, isNamed) => findSkipReason(getLine(key), isNamed),
    getEntry,
    beginAttempt(key) {
      const line = getLine(key)
      const isProviderProbe = line.provider !== null && probe(line.provider)
      return probe(line) || isProviderProbe
    },
    endProbe(key) {
      const line = getLine(key)
      if (line.provider !== null) line.provider.health = withoutProbe(line.provider.health)
      line.health = withoutProbe(line.health)
    },
    lateAfterMs: (key, typicalMs) => lateAfterMs(findLine(key)?.firstTokens ?? null, typicalMs, clock.monotonic()),
    waited(key, waitedMs) {
      noteFirstToken(getLine(key), waitedMs, clock.monotonic())
    },
    firstTokenMs: key => findLine(key)?.health.firstTokenMs ?? null,
    findFigures(key, published) {
      const line = lines.get(key)
      if (line === undefined || line.live === null) return null
      const now = clock.monotonic()
      const { blended } = line
      if (blended !== null && blended.published === published && now - blended.at < blendedForMs) return blended.figures
      const figures = blendWithCatalog(published, line.live, now)
      line.blended = { figures, published, at: now }
      return figures
    },
    list: () => [...lines.keys(), ...ofCredentials.keys()].filter(key => key.includes('/')).map(getEntry),
    beginRequest() {
      activeRequests++
      return once(() => {
        activeRequests--
      })
    },
    beginRetry() {
      if (activeRetries >= Math.max(minimumRetries, Math.floor(activeRequests * retriesPerRequest))) return null
      activeRetries++
      return once(() => {
        activeRetries--
      })
    },
  }
}

/** Returns whether a model's and its credential's circuits are closed, the usual case: only reports then change its state. */
function isClosed({ health, provider }: Line): boolean {
  return health.closure === 'none' && (provider === null || provider.health.closure === 'none')
}

/** Returns the key of a credential: `openai/gpt-5#2` → `openai#2`. Without a slash, so it equals no model's key. */
function providerKey(key: string): string {
  const credential = key.includes('#') ? key.slice(key.lastIndexOf('#')) : ''
  return key.slice(0, key.indexOf('/')) + credential
}

function once(action: () => void): { end(): void } {
  let ended = false
  return {
    end() {
      if (ended) return
      ended = true
      action()
    },
  }
}
