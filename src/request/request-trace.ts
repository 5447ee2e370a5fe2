/**
 * Builds the trace of a settled request: its routing at that time, and the facts behind its attempts and cost. Content-free
 * and bounded, since every usage record carries one.
 */
import { type Attempt, type AttemptOutcome, type AttemptSkip, attemptSkips } from '../core/chat/attempts.ts'
import type { FallbackPolicy } from '../core/chat/chat.ts'
import type { TokenUsage } from '../core/chat/chat-events.ts'
import type { Rates } from '../core/models/pricing.ts'
import { costParts } from '../core/usage/money.ts'
import { fieldName } from '../core/usage/rejection.ts'
import {
  maximumTraced,
  maximumTried,
  type RequestTrace,
  type TracedCandidate,
  toThousandths,
} from '../core/usage/usage-record.ts'
import type { Progress } from './progress.ts'
import { wasCalled } from './record.ts'
import type { Candidate } from './routing/candidate.ts'
import type { Route } from './routing/route.ts'

/** Builds the trace. Ranks no further candidates: most requests for a named model need no fallbacks. */
export function toRequestTrace(
  { ranked }: Pick<Route, 'ranked'>,
  { attempts, decision }: Pick<Progress, 'attempts' | 'decision'>,
  cost: {
    readonly rates: Rates | null
    readonly usage: TokenUsage
    readonly fallback?: FallbackPolicy
  },
): RequestTrace {
  return {
    c: inCallOrder(ranked).slice(0, maximumTraced).map(toTracedCandidate),
    ...tracedAttempts(attempts),
    ...tracedSkips(attempts),
    ...(cost.rates === null ? {} : { b: costParts(cost.rates, cost.usage) }),
    ...tracedDecision(decision),
    ...(cost.fallback === undefined || cost.fallback === 'any' ? {} : { f: cost.fallback }),
  }
}

/** A ranking can have models of a lower output limit behind unhealthy ones, which are called last. */
function inCallOrder(ranked: readonly Candidate[]): readonly Candidate[] {
  const last = ranked.filter(({ place }) => place === 'unhealthy')
  return last.length === 0 ? ranked : [...ranked.filter(({ place }) => place !== 'unhealthy'), ...last]
}

/** Returns the HTTP statuses of the attempts that the record lists. */
export function tracedAttempts(attempts: readonly Attempt[]): Pick<RequestTrace, 's'> {
  const statuses: number[] = []
  for (const { outcome, status } of attempts) if (wasCalled(outcome)) statuses.push(status ?? 0)
  return statuses.length === 0 ? {} : { s: statuses.slice(-maximumTried) }
}

/** Returns the candidates that were not called in their turn. */
function tracedSkips(attempts: readonly Attempt[]): Pick<RequestTrace, 'k'> {
  const skips = attempts.flatMap(({ model, outcome }) => (isSkip(outcome) ? [[model, outcome] as const] : []))
  return skips.length === 0 ? {} : { k: skips.slice(0, maximumTraced) }
}

function isSkip(outcome: AttemptOutcome): outcome is AttemptSkip {
  return attemptSkips.some(one => one === outcome)
}

/** Returns the moderation layer that decided, and the field that the error names. */
export function tracedDecision(decision: Progress['decision']): Pick<RequestTrace, 'm' | 'p'> {
  if (decision === null) return {}
  const { layer, category, param } = decision
  const field = fieldName(param)
  return {
    ...(layer === null ? {} : { m: [layer.slice(0, 32), (category ?? '').slice(0, 64)] }),
    ...(field === null ? {} : { p: field }),
  }
}

function toTracedCandidate(candidate: Candidate): TracedCandidate {
  const { model, score, place, health } = candidate
  const parts = candidate.parts()
  return [
    `${model.provider}/${model.id}`,
    toThousandths(score),
    place,
    health,
    parts === null
      ? null
      : [
          toThousandths(parts.quality),
          toThousandths(parts.cost),
          toThousandths(parts.speed),
          toThousandths(parts.reliability),
          toThousandths(parts.adjustment),
        ],
  ]
}
