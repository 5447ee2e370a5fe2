import { Elysia } from 'elysia'
import { type ChatRequest, queryTypes } from '../../core/chat/chat.ts'
import type { RateLimiterFactory } from '../../core/limits/rate-limits.ts'
import { shownRule } from '../../core/policy/rules.ts'
import { toUsd } from '../../core/usage/money.ts'
import { parseJson } from '../../core/validation/validate.ts'
import { answerHeld } from '../../http/body.ts'
import type { ChatRouteDeps } from '../../http/chat-handler.ts'
import { enforceAccountLimit } from '../../http/rate-limits.ts'
import { policies, withRouteDocs } from '../../http/route-docs.ts'
import { type Preview, type PreviewedCandidate, planDryRun } from '../../request/dry-run.ts'
import { classifierScores } from '../../text/analysis/prompt-analysis.ts'
import { readLastTurn } from '../../text/segments/conversation.ts'
import { type DryRun, dryRunShape, mostSegments } from './dry-run-schemas.ts'
import { nativeSchema, readNative } from './request.ts'

/** A dry run is free and does not count against the account's limits, so it has its own limit. */
const each = { perMinute: 60, burst: 30 }

type RouteModuleDeps = Parameters<typeof planDryRun>[0] &
  Pick<ChatRouteDeps, 'getCaller' | 'meter' | 'look' | 'newRequestId' | 'bodies' | 'clock'> & {
    readonly limits: RateLimiterFactory
  }

/** `POST /api/v1/route`: how a chat request would be routed, and why. Calls, bills and counts nothing. */
export function dryRun(deps: RouteModuleDeps) {
  const { meter, look, newRequestId, limits } = deps
  const limit = limits('route', each)

  return new Elysia({ name: 'dry-run' }).post(
    '/api/v1/route',
    ({ request }) =>
      answerHeld(deps, request, {
        admit: ({ accountId }) =>
          enforceAccountLimit(limit, accountId, { perMinute: each.perMinute, what: 'dry runs' }),
        async answer(text, caller) {
          const chatRequest = readNative(parseJson(text), request.headers, text.length)
          // The remaining daily limit decides which models are dropped, so it is loaded for an account that this process
          // has not seen.
          if (meter.quotaStatus(caller.accountId, caller.limits) === null) await look(caller, newRequestId())
          const preview = await planDryRun(deps, caller, { asked: chatRequest, headers: request.headers })
          return Response.json(shown(preview, chatRequest), { headers: { 'cache-control': 'no-store' } })
        },
      }),
    {
      parse: 'none',
      ...withRouteDocs(policies.apiKey, {
        summary: 'Preview routing',
        description:
          'A dry run of `POST /api/v1/chat` with the same body: the candidates in the order in which they would be called now. ' +
          'An account over a limit gets the chat request’s error. Calls, bills and counts nothing.',
        body: nativeSchema,
        examples: {
          prompt: { prompt: 'Prove that there are infinitely many primes.' },
          strategy: { prompt: 'Say hello in French.', strategy: 'cost', test_mode: true },
        },
        answer: dryRunShape,
        answerHeaders: [],
        errors: [
          'unsupported_parameter',
          'forbidden',
          'constraints_unmet',
          'context_length_exceeded',
          'model_deprecated',
          'model_not_found',
          'payment_required',
          'requests_per_minute_exceeded',
          'concurrent_requests_exceeded',
          'daily_tokens_exceeded',
          'daily_cost_exceeded',
          'monthly_cost_exceeded',
          'no_model_available',
        ],
      }),
    },
  )
}

function shown(
  { analysis: scan, shares, constraints, rules, plan, candidates, known, difficulty }: Preview,
  { testMode, messages }: ChatRequest,
): DryRun {
  return {
    mode: plan.mode,
    constraints: [...constraints],
    rules: rules.map(shownRule),
    strategy: plan.strategy,
    query_type: scan.queryType,
    query_type_scores: classifierScores(Float64Array.from(queryTypes, type => round(scan.queryTypeScores[type]))),
    complexity: round(scan.complexity),
    strong_gain: round(scan.strongGain),
    difficulty: difficulty.map(({ signal, weight }) => ({ signal, weight: round(weight) })),
    segments: readLastTurn(messages).segments.parts.slice(0, mostSegments),
    level: plan.level,
    shares: { strong: shares.strong, middle: shares.middle },
    needs_current: scan.needsCurrent,
    needs_current_score: round(scan.needsCurrentScore),
    language: scan.language,
    web: { search: plan.web.query !== null, urls: plan.web.urls.length },
    input_tokens: plan.inputTokens,
    test_mode: testMode,
    candidates: candidates.map(shownCandidate),
    dropped: plan.dropped.map(({ model, reason }) => ({ model, reason })),
    learning: { influenced: plan.learning.influenced },
    kept: plan.isKept,
    conversation: plan.turn && {
      reason: plan.turn.reason,
      turns: plan.turn.next.turns,
      raised: plan.turn.next.raised,
      stalled: plan.turn.next.stalled,
      cached_tokens: plan.turn.next.cachedTokens,
    },
    typical_error_pct: known.typicalErrorPct,
  }
}

function shownCandidate({
  candidate,
  place,
  reasons,
  costMicrocents,
  health,
  healthDetail,
  figures,
}: PreviewedCandidate) {
  const parts = candidate.parts()
  return {
    model: `${candidate.model.provider}/${candidate.model.id}`,
    effort: candidate.effort ?? null,
    score: round(candidate.score),
    parts: parts && {
      quality: round(parts.quality),
      cost: round(parts.cost),
      speed: round(parts.speed),
      reliability: round(parts.reliability),
      adjustment: round(parts.adjustment),
    },
    place,
    reasons: [...reasons],
    estimated_cost_usd: toUsd(costMicrocents),
    own_key: candidate.endpoint.own !== undefined,
    health,
    health_detail: healthDetail && {
      cause: healthDetail.cause,
      failure_rate: round(healthDetail.failureRate),
      since: healthDetail.since === null ? null : new Date(healthDetail.since).toISOString(),
    },
    figures: {
      quality: round(figures.quality),
      first_token_ms: Math.round(figures.firstTokenMs),
      tokens_per_second: round(figures.tokensPerSecond),
      error_rate: round(figures.errorRate),
      measured_tries: round(figures.tries),
    },
  }
}

/** Rounds to four decimal places, without a negative zero. */
function round(value: number): number {
  return Math.round(value * 1e4) / 1e4 + 0
}
