/** A fallback reserves what its provider may add, at its own price, or is skipped. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { requestedTier } from '../../src/core/chat/provider-features.ts'
import type { Model } from '../../src/core/models/models.ts'
import { priceVariant, ratesAt } from '../../src/core/models/pricing.ts'
import { getCost } from '../../src/core/usage/money.ts'
import { readMessages } from '../../src/dialects/messages/request.ts'
import { createReasoningSeal } from '../../src/dialects/reasoning-seal.ts'
import type { Reservation } from '../../src/limits/meter.ts'
import { catalog } from '../../src/models/catalog.ts'
import { anthropic } from '../../src/providers/anthropic.ts'
import { azure } from '../../src/providers/azure.ts'
import { bedrock } from '../../src/providers/bedrock.ts'
import { openai } from '../../src/providers/openai.ts'
import { openaiResponses } from '../../src/providers/openai-responses.ts'
import { affordable, highestUsage } from '../../src/request/affordable.ts'
import { Progress } from '../../src/request/progress.ts'
import { noWeb } from '../../src/web/web-plan.ts'
import { getCandidate } from './support.ts'

const published = catalog.find(model => model.id === 'claude-haiku-4-5')
if (published === undefined) throw new Error('the catalog has changed: choose another model')
const cheap: Model = published
const dear: Model = { ...cheap, id: 'dear', pricing: { ...cheap.pricing, input: cheap.pricing.input * 5 } }

const body = { model: 'm', max_tokens: 10, messages: [{ role: 'user', content: 'Hi' }], tools: [search()] }
const source = { headers: new Headers(), text: JSON.stringify(body), accountId: 'a' }
const { request: chatRequest } = readMessages(body, source, createReasoningSeal('a secret of the tests', null))

function search() {
  return { type: 'web_search_20250305', name: 'web_search', max_uses: 1 }
}

function claude(model: Model) {
  const candidate = getCandidate(model)
  return { ...candidate, endpoint: { ...candidate.endpoint, provider: anthropic } }
}

/** Asks for a fallback from `cheap` with a reservation of a part of what the first can cost; returns what was raised to. */
async function fallBackTo(to: ReturnType<typeof getCandidate>, part: number, canRaise: boolean) {
  const first = claude(cheap)
  const plan = { inputTokens: 100, choices: 1, terms: { at: 0, tier: null }, first, web: noWeb }
  const reservation = {
    requestId: 'r',
    accountId: 'a',
    outputCap: 10,
    reservedTokens: 0,
    reservedMicrocents: 0,
    day: 1,
  }
  const { inputTokens, microcents } = highestUsage({ plan, request: chatRequest }, first, reservation)
  const reserved = { reservedTokens: (inputTokens + 10) * part, reservedMicrocents: microcents * part }
  const progress = new Progress({ ...reservation, ...reserved }, { route: 0, admit: 0 })
  const raises: number[] = []
  const raise = async (held: Reservation, reservedTokens: number, reservedMicrocents: number) => {
    raises.push(reservedMicrocents)
    return canRaise ? { ...held, reservedTokens, reservedMicrocents } : null
  }
  const result = await affordable({ raise }, { plan, prepared: { request: chatRequest } }, progress, {
    candidate: to,
    isHedge: false,
    spent: null,
  })
  return { result, raises, highest: highestUsage({ plan, request: chatRequest }, to, reservation) }
}

test('affordable: reserves the added input again when a fallback is more expensive', async () => {
  const { result, highest } = await fallBackTo(claude(dear), 1, true)
  expect(highest.addedTokens).toBeGreaterThan(100_000)
  expect(result?.reservedMicrocents).toBe(highest.microcents)
})

test('affordable: skips a more expensive fallback when the account cannot cover its added input', async () => {
  const { result, raises } = await fallBackTo(claude(dear), 1, false)
  expect(result).toBeNull()
  expect(raises.length).toBeGreaterThan(0)
})

test('affordable: keeps a reservation of all that was left when another host has the same price', async () => {
  const { result, raises } = await fallBackTo(claude({ ...cheap, id: 'same' }), 0.1, false)
  expect([result === null, raises]).toEqual([false, []])
})

test('highestUsage: adds nothing for a provider that does not receive the body of the client', async () => {
  const { highest } = await fallBackTo(getCandidate(dear), 1, true)
  expect(highest.addedTokens).toBe(0)
})

test('highestUsage: returns nothing below 0 when the other fields are longer than the plan', () => {
  const embedding = { inputs: ['a'], isSingle: true, texts: ['a'], tokens: [1], dimensions: null }
  fc.assert(
    fc.property(
      fc.nat({ max: 1_000 }),
      fc.constantFrom('openai', 'anthropic', 'google', 'local'),
      fc.string({ maxLength: 20 }).map(text => text.repeat(200)),
      fc.boolean(),
      (inputTokens, provider, pad, isEmbedded) => {
        const plan = { inputTokens, choices: 1, terms: { at: 0, tier: null } }
        const request = { ...chatRequest, source: null, extras: { pad }, ...(isEmbedded ? { embedding } : {}) }
        const reservation = {
          requestId: 'r',
          accountId: 'a',
          outputCap: 1,
          reservedTokens: 0,
          reservedMicrocents: 0,
          day: 1,
        }
        const highest = highestUsage({ plan, request }, getCandidate({ ...cheap, provider }), reservation)
        expect(Math.min(highest.inputTokens, highest.microcents)).toBeGreaterThanOrEqual(0)
        if (isEmbedded) expect(highest.inputTokens).toBeGreaterThanOrEqual(inputTokens)
      },
    ),
  )
})

const adapters = {
  openai: openai({ official: true }),
  compatible: openai({ official: false }),
  azure: azure({ apiVersion: null }),
  responses: openaiResponses,
  anthropic,
  bedrock,
}
const tierNames = ['auto', 'default', 'standard', 'flex', 'priority', 'performance', 'standard_only'] as const
const access = { baseUrl: 'http://127.0.0.1:1', apiKey: 'k' }

test('highestUsage: covers the bill in each tier that the provider can answer in, for each candidate of a request', () => {
  fc.assert(
    fc.property(
      fc.record({
        adapter: fc.constantFrom(...Object.values(adapters)),
        priced: fc.uniqueArray(fc.tuple(fc.constantFrom(...tierNames), fc.integer({ min: 1, max: 9 })), {
          maxLength: 3,
        }),
        named: fc.option(fc.constantFrom(...tierNames)),
        dialect: fc.constantFrom('completions', 'messages'),
        passExtras: fc.boolean(),
        listed: fc.boolean(),
        answered: fc.constantFrom(...tierNames),
      }),
      ({ adapter, priced, named, dialect, passExtras, listed, answered }) => {
        const rates = { input: 1, output: 1, cachedInput: null, cacheWrite: null, longContext: null }
        const variants = priced.map(([serviceTier, price]) =>
          priceVariant({ serviceTier }, { ...rates, input: price, output: price }),
        )
        const model = { ...cheap, parameters: { ...cheap.parameters, passExtras }, pricing: { ...rates, variants } }
        const extras = named === null ? {} : { service_tier: named }
        const request = {
          ...chatRequest,
          source: null,
          tools: [],
          extras,
          ...(dialect === 'messages' ? { dialect } : {}),
        }
        const candidate = { ...getCandidate(model), endpoint: { ...getCandidate(model).endpoint, provider: adapter } }
        const extraFields = listed ? ['service_tier'] : []
        const question = { request, model, outputCap: 10, stream: false }
        const sent = JSON.parse(adapter.toRequest(question, { ...access, extraFields }).body).service_tier
        // A tier that was not sent leaves the choice to the operator's settings; one that was, at most the usual tier.
        const isFree = sent === undefined || sent === 'auto' || sent === 'standard_only'
        const tier = isFree || answered === 'default' || answered === 'standard' ? answered : String(sent)
        const plan = { inputTokens: 100, choices: 1, terms: { at: 0, tier: requestedTier(request) } }
        const reservation = {
          requestId: 'r',
          accountId: 'a',
          outputCap: 10,
          reservedTokens: 0,
          reservedMicrocents: 0,
          day: 1,
        }
        const used = {
          inputTokens: 100,
          outputTokens: 10,
          cachedInputTokens: 0,
          cacheWriteTokens: 0,
          reasoningTokens: 0,
        }
        expect(getCost(ratesAt(model.pricing, { at: 0, tier }), used)).toBeLessThanOrEqual(
          highestUsage({ plan, request }, candidate, reservation).microcents,
        )
      },
    ),
    { numRuns: 1_000 },
  )
})

test.each([
  ['a tier that is sent', 'flex', 100],
  ['a tier that is dropped', 'priority', 200],
  ['no tier', null, 200],
] as const)('highestUsage: reserves the prices of each possible tier when the request names %s', (_, named, price) => {
  const rates = { input: 1, output: 1, cachedInput: null, cacheWrite: null, longContext: null }
  const double = priceVariant({ serviceTier: 'performance' }, { ...rates, input: 2, output: 2 })
  const half = priceVariant({ serviceTier: 'flex' }, { ...rates, input: 0.5, output: 0.5 })
  const model = { ...cheap, pricing: { ...rates, variants: [double, half] } }
  const candidate = { ...getCandidate(model), endpoint: { ...getCandidate(model).endpoint, provider: adapters.openai } }
  const plan = { inputTokens: 100, choices: 1, terms: { at: 0, tier: named } }
  const reservation = {
    requestId: 'r',
    accountId: 'a',
    outputCap: 10,
    reservedTokens: 0,
    reservedMicrocents: 0,
    day: 1,
  }
  const request = { ...chatRequest, source: null, tools: [] }
  expect(highestUsage({ plan, request }, candidate, reservation).microcents).toBe(price * 110)
})
