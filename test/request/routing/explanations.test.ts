/** The stated reasons of a ranking against the ranking itself, over 1,000 random worlds with a real health tracker. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { attemptFailures } from '../../../src/core/chat/attempts.ts'
import { strategies } from '../../../src/core/chat/chat.ts'
import { type Caller, plans } from '../../../src/core/limits/plans.ts'
import { buildCatalog, fullName, type Model } from '../../../src/core/models/models.ts'
import { GatewayError } from '../../../src/core/validation/errors.ts'
import { catalog } from '../../../src/models/catalog.ts'
import type { HealthOutcome } from '../../../src/models/circuit-breaker.ts'
import { createHealthTracker } from '../../../src/models/health-tracker.ts'
import { nearScore } from '../../../src/models/insert-sorted.ts'
import { explainOrder } from '../../../src/request/dry-run.ts'
import { traceCandidates } from '../../../src/request/record.ts'
import { inOrder } from '../../../src/request/routing/hosts.ts'
import { degradedPenalty } from '../../../src/request/routing/rank-candidates.ts'
import { type RouteDeps, route } from '../../../src/request/routing/route.ts'
import { listPrice, nearEqualPrice } from '../../../src/request/routing/score-candidates.ts'
import { askWith } from '../../harness/ask.ts'
import { analysis, getProvider } from '../support.ts'

const caller: Caller = { accountId: 'acc_1', keyId: 'key_1', plan: 'usage', limits: plans.usage }
const models = buildCatalog(catalog)
const outcomes: readonly HealthOutcome[] = ['ok', 'soft_failure', 'unhealthy', 'cooling', 'switched_off']
const inputTokens = 2_000

const worlds = fc.record({
  providers: fc.subarray(['openai', 'anthropic', 'google'], { minLength: 1 }),
  strategy: fc.constantFrom(null, ...strategies),
  named: fc.option(fc.nat({ max: models.list.length - 1 }), { freq: 3 }),
  strongGain: fc.double({ min: 0, max: 1, noNaN: true }),
  maxOutputTokens: fc.constantFrom(null, null, 500, 20_000, 70_000),
  reports: fc.array(
    fc.record({
      model: fc.nat({ max: models.list.length - 1 }),
      outcome: fc.constantFrom(...outcomes),
      times: fc.integer({ min: 1, max: 12 }),
      cause: fc.constantFrom(...attemptFailures),
    }),
    { maxLength: 30 },
  ),
  waitMs: fc.constantFrom(0, 1_000, 3_000, 70_000),
  tied: fc.option(fc.nat({ max: models.list.length - 1 })),
  learned: fc.option(fc.integer({ min: 1, max: 200 })),
  capShare: fc.constantFrom(0, 0, 0.85, 1),
  random: fc.constantFrom(0, 1),
})
type World = typeof worlds extends fc.Arbitrary<infer T> ? T : never

function modelAt(index: number): Model {
  const model = models.list[index]
  if (model === undefined) throw new Error('the index is within the catalog')
  return model
}

function explained(world: World) {
  let now = Date.parse('2026-11-20T12:00:00Z')
  const health = createHealthTracker({ clock: { now: () => now, monotonic: () => now } })
  for (const { model, outcome, times, cause } of world.reports)
    for (let time = 0; time < times; time++) {
      const failed = outcome === 'ok' ? {} : { cause }
      health.report(fullName(modelAt(model)), { outcome, ...failed })
    }
  now += world.waitMs
  const { tied, learned } = world
  const deps: RouteDeps = {
    catalog: models,
    endpoints: new Map(world.providers.map(id => [id, getProvider(id)])),
    health,
    meter: { quotaStatus: () => null },
    clock: { now: () => now },
    random: () => world.random,
    ties: {
      of: () => (tied === null ? null : { model: fullName(modelAt(tied)), tokens: inputTokens }),
      find: () => null,
      digest: (_account, text) => text,
    },
    budget: { getShare: () => world.capShare },
    learning: {
      of: () => ({
        epoch: 1,
        findLeaning: () =>
          learned === null
            ? null
            : name => ({ bias: ((name.length % 5) - 2) / 50, entries: (name.length * learned) % 90 }),
      }),
    },
  }
  const model = world.named === null ? null : fullName(modelAt(world.named))
  const request = askWith({
    model,
    strategy: world.strategy,
    maxOutputTokens: world.maxOutputTokens,
    fallbackMaxCostFactor: 9,
  })
  const plan = route(deps, { caller, request, analysis: { ...analysis, strongGain: world.strongGain }, inputTokens })
  return { plan, health, shown: explainOrder({ health }, plan), called: [...inOrder({ health }, plan, () => {})] }
}

/** The statements that can be false, each against the order. */
function check(world: World): void {
  let result: ReturnType<typeof explained>
  try {
    result = explained(world)
  } catch (thrown) {
    // A named model of a provider that is not configured, or without the requested output length.
    if (!(thrown instanceof GatewayError)) throw thrown
    fc.pre(false)
  }
  const { plan, health, shown, called } = result
  expect(shown.map(({ candidate }) => candidate)).toEqual(called)
  for (const [at, item] of shown.entries()) {
    const { candidate, place, reasons } = item
    const rest = shown.slice(at + 1)
    const skip = health.skipReason(fullName(candidate.model), plan.mode === 'manual' && candidate === plan.first)
    // A model that must not be called stands last, unless none may be called.
    if (skip !== null && place !== 'unhealthy') expect(shown.every(other => other.place !== 'unhealthy')).toBe(true)
    if (place === 'unhealthy') {
      expect(skip).not.toBeNull()
      expect(rest.every(other => other.place === 'unhealthy')).toBe(true)
    }
    if (place === 'score' || place === 'price')
      for (const later of rest.filter(other => other.place === place && item.health === other.health)) {
        if (place === 'score') expect(candidate.score).toBeGreaterThanOrEqual(later.candidate.score)
        else
          expect(listPrice(candidate.model, { inputTokens, terms: plan.terms })).toBeLessThanOrEqual(
            nearEqualPrice * listPrice(later.candidate.model, { inputTokens, terms: plan.terms }),
          )
      }
    if (place === 'score')
      for (const later of rest.filter(other => other.place === 'score'))
        expect(candidate.score).toBeGreaterThanOrEqual(later.candidate.score)
    if (place === 'other_provider') {
      const passed = rest.filter(
        ({ candidate: { score } }) => score >= candidate.score && score - candidate.score <= nearScore,
      )
      expect(passed.length > 0 || shown.length === 6).toBe(true)
    }
    if (place === 'explored' || place === 'requested') expect(at).toBe(0)
    if (place === 'cached')
      expect(fullName(candidate.model)).toBe(world.tied === null ? '' : fullName(modelAt(world.tied)))
    if (place === 'output_limit') {
      const allows = ({ maxOutputTokens, contextWindow }: Model) =>
        maxOutputTokens >= (world.maxOutputTokens ?? 0) && contextWindow >= inputTokens + (world.maxOutputTokens ?? 0)
      expect(allows(candidate.model)).toBe(false)
      expect(rest.every(other => other.place === 'unhealthy' || !allows(other.candidate.model))).toBe(true)
    }
    const parts = candidate.parts()
    if (parts !== null) {
      const { quality, cost, speed, reliability, adjustment } = parts
      expect(quality + cost + speed + reliability + adjustment).toBeCloseTo(candidate.score, 9)
      const isPlain = world.learned === null && world.capShare === 0
      if (isPlain && reasons.some(reason => reason.includes('0.1 lower')) && candidate.score > 0)
        expect(adjustment).toBeCloseTo(-degradedPenalty, 9)
    }
    // A model that is not healthy shows its cause, rate and since when; a healthy one shows none of it.
    expect(reasons.some(reason => /attempts failed/.test(reason))).toBe(item.health !== 'healthy')
    expect(item.health).toBe(health.getStanding(fullName(candidate.model)).state)
    if (item.health !== 'healthy') expect(item.healthDetail?.since).not.toBeNull()
  }
  if (plan.mode === 'manual') return
  expect(traceCandidates(plan.ranked).map(([model, , place]) => [model, place])).toEqual(
    shown.map(({ candidate, place }) => [fullName(candidate.model), place]),
  )
}

test('explainOrder: states only reasons that agree with the order of calls, over 1,000 random worlds', () => {
  fc.assert(fc.property(worlds, check), { numRuns: 1_000 })
}, 240_000)
