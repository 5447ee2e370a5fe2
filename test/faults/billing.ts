/** Billing when an upstream's counts are missing or absurd, and requests of an account with little remaining. */
import { describe, expect, test } from 'bun:test'
import { getCost, getHighestCost } from '../../src/core/usage/money.ts'
import { rig } from './shared-rig.ts'
import { type Counts, formats, goodAnswer, models, reservationsTaken, servedBy } from './support.ts'

const ways = ['whole', 'native'] as const

describe.each([...formats])('billing (%s)', format => {
  const askWith = (mode: (typeof ways)[number], counts: Counts | null) => {
    rig.play(format, request => goodAnswer(format, request, servedBy(format), counts))
    return rig.send(mode, { model: models[format], maxTokens: 64 })
  }

  test('uses estimated counts when they are missing, marked as such', async () => {
    const each = async (mode: (typeof ways)[number]) => {
      const reply = await askWith(mode, null)
      expect(reply.usage?.estimated).toBe(true)
      expect(reply.usage?.input).toBeGreaterThan(3)
      expect(reply.usage?.output).toBeGreaterThan(3)
      expect(reply.usage?.output).toBeLessThan(20)
      const row = await rig.row(reply.requestId)
      expect([row.input_tokens, row.output_tokens, row.estimated]).toEqual([
        reply.usage?.input ?? -1,
        reply.usage?.output ?? -1,
        true,
      ])
      expect(row.billed_microcents).toBeGreaterThan(0)
      expect(row.billed_microcents).toBeLessThanOrEqual(row.reserved_microcents)
    }
    await Promise.all(ways.map(each))
  })

  test('keeps a count of 0', async () => {
    const each = async (mode: (typeof ways)[number]) => {
      const reply = await askWith(mode, { input: 0, output: 0 })
      expect(reply.usage).toEqual({ input: 0, output: 0, estimated: false })
      expect(await rig.row(reply.requestId)).toMatchObject({ billed_microcents: 0, status: 'completed' })
    }
    await Promise.all(ways.map(each))
  })

  test('ignores absurd counts and marks the estimate', async () => {
    const each = async (mode: (typeof ways)[number]) => {
      const reply = await askWith(mode, { input: 1e12, output: 1e12 })
      expect(reply.httpStatus).toBe(200)
      expect(reply.usage?.estimated).toBe(true)
      const row = await rig.row(reply.requestId)
      expect(row.billed_microcents).toBeWithin(1, row.reserved_microcents)
    }
    await Promise.all(ways.map(each))
  })

  test('limits counts to what the model can read and write, and logs it', async () => {
    const model = rig.gateway.deps.catalog.resolve(models[format])
    if (model === null) throw new Error('the model of this rig is in the catalog')
    const each = async (mode: (typeof ways)[number]) => {
      const logged = rig.gateway.logLines.length
      const reply = await askWith(mode, { input: 9e8, output: 9e8 })
      expect(reply.httpStatus).toBe(200)
      const row = await rig.row(reply.requestId)
      expect([row.input_tokens, row.output_tokens]).toEqual([model.contextWindow, model.maxOutputTokens])
      const used = {
        cachedInputTokens: 0,
        cacheWriteTokens: 0,
        reasoningTokens: 0,
        inputTokens: model.contextWindow,
        outputTokens: model.maxOutputTokens,
      }
      // An account on `usage` owes more than was reserved.
      expect(row.billed_microcents).toBe(getCost(model.pricing, used))
      expect(rig.gateway.logLines.slice(logged).some(line => line.includes('bill_capped_at_reservation'))).toBe(true)
    }
    await Promise.all(ways.map(each))
  })

  test.each([
    ['negative', -5],
    ['not a number', 'NaN'],
    ['fractional', 0.5],
    ['beyond all numbers', 1e300],
  ])('accepts %s counts without failing or negative cost', async (_, value) => {
    const each = async (mode: (typeof ways)[number]) => {
      const reply = await askWith(mode, { input: value, output: value })
      expect([reply.httpStatus, reply.text, reply.endings]).toEqual([200, servedBy(format), 1])
      const row = await rig.row(reply.requestId)
      expect(row.billed_microcents).toBeGreaterThanOrEqual(0)
      expect(row.billed_microcents).toBeLessThanOrEqual(row.reserved_microcents)
    }
    await Promise.all(ways.map(each))
  })
})

test('reservation: covers a prompt written to a cache at a higher price', async () => {
  const input = 1_000
  const prompt = 'word '.repeat(input)
  rig.play('anthropic', request => goodAnswer('anthropic', request, 'ok', { input, output: 1, cacheWrite: input }))
  const reply = await rig.send('whole', { model: models.anthropic, prompt, maxTokens: 1 })
  const model = rig.gateway.deps.catalog.resolve(models.anthropic)
  const row = await rig.row(reply.requestId)
  expect(row.billed_microcents).toBe(
    model === null
      ? -1
      : getHighestCost(model.pricing, { inputTokens: input, outputTokens: 1 }, { at: Date.now(), tier: null }),
  )
  expect(
    rig.gateway.logLines.some(line => line.includes('bill_capped_at_reservation') && line.includes(reply.requestId)),
  ).toBe(false)
})

test('billing: releases all reservations', () => {
  expect(reservationsTaken(rig)).toBe(0)
})
