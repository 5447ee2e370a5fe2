/** A fallback reserves what its provider may add, at its own price, or is skipped. */
import { expect, test } from 'bun:test'
import type { Model } from '../../src/core/models/models.ts'
import { readMessages } from '../../src/dialects/messages/request.ts'
import { createReasoningSeal } from '../../src/dialects/reasoning-seal.ts'
import type { Reservation } from '../../src/limits/meter.ts'
import { catalog } from '../../src/models/catalog.ts'
import { anthropic } from '../../src/providers/anthropic.ts'
import { affordable, highestUsage } from '../../src/request/affordable.ts'
import { createProgress } from '../../src/request/progress.ts'
import { noWeb } from '../../src/web/web-plan.ts'
import { candidateOf } from './support.ts'

const published = catalog.find(one => one.id === 'claude-haiku-4-5')
if (published === undefined) throw new Error('the catalog has changed: choose another model')
const cheap: Model = published
const dear: Model = { ...cheap, id: 'dear', pricing: { ...cheap.pricing, input: cheap.pricing.input * 5 } }

const body = { model: 'm', max_tokens: 10, messages: [{ role: 'user', content: 'Hi' }], tools: [search()] }
const source = { headers: new Headers(), text: JSON.stringify(body), accountId: 'a' }
const { ask } = readMessages(body, source, createReasoningSeal('a secret of the tests', null))

function search() {
  return { type: 'web_search_20250305', name: 'web_search', max_uses: 1 }
}

function claude(model: Model) {
  const candidate = candidateOf(model)
  return { ...candidate, endpoint: { ...candidate.endpoint, provider: anthropic } }
}

/** Asks for a fallback from `cheap` with a reservation of a part of what the first can cost; returns what was raised to. */
async function fallBackTo(to: ReturnType<typeof candidateOf>, part: number, canRaise: boolean) {
  const first = claude(cheap)
  const plan = { inputTokens: 100, choices: 1, terms: { at: 0, tier: null }, first, web: noWeb }
  const seat = { requestId: 'r', accountId: 'a', outputCap: 10, reservedTokens: 0, reservedMicrocents: 0, day: 1 }
  const { inputTokens, microcents } = highestUsage({ plan, ask }, first, seat)
  const reserved = { reservedTokens: (inputTokens + 10) * part, reservedMicrocents: microcents * part }
  const progress = createProgress({ ...seat, ...reserved }, { route: 0, admit: 0 })
  const raises: number[] = []
  const raise = async (held: Reservation, reservedTokens: number, reservedMicrocents: number) => {
    raises.push(reservedMicrocents)
    return canRaise ? { ...held, reservedTokens, reservedMicrocents } : null
  }
  const result = await affordable({ raise }, { plan, prepared: { ask } }, to, progress)
  return { result, raises, highest: highestUsage({ plan, ask }, to, seat) }
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
  const { highest } = await fallBackTo(candidateOf(dear), 1, true)
  expect(highest.addedTokens).toBe(0)
})
