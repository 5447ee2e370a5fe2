import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { gatewayOutputCap } from '../../../src/core/chat/attempts.ts'

const caps = { client: null, usual: 16_384, plannedLimit: 64_000, granted: 16_384, modelLimit: 64_000 }

describe('gatewayOutputCap', () => {
  test("returns the default, the model limit, or the account's share as origin", () => {
    expect(gatewayOutputCap(caps)).toEqual({ tokens: 16_384, limitedBy: 'default' })
    expect(gatewayOutputCap({ ...caps, plannedLimit: 8_000, granted: 8_000, modelLimit: 8_000 })).toEqual({
      tokens: 8_000,
      limitedBy: 'model_limit',
    })
    expect(gatewayOutputCap({ ...caps, granted: 500 })).toEqual({ tokens: 500, limitedBy: 'account_remaining' })
  })

  test('returns the model limit of a fallback when it is below the reserved cap', () => {
    expect(gatewayOutputCap({ ...caps, modelLimit: 4_000 })).toEqual({ tokens: 4_000, limitedBy: 'model_limit' })
  })

  test("returns null when the client's cap applies, but not when less was granted", () => {
    expect(gatewayOutputCap({ ...caps, client: 100, granted: 100 })).toBeNull()
    expect(gatewayOutputCap({ ...caps, client: 100, granted: 40 })).toEqual({
      tokens: 40,
      limitedBy: 'account_remaining',
    })
    expect(gatewayOutputCap({ ...caps, client: 9_000, granted: 9_000, modelLimit: 8_000 })).toEqual({
      tokens: 8_000,
      limitedBy: 'model_limit',
    })
  })

  test('returns the cap that is sent upstream, never a larger one, for any limits', () => {
    const count = fc.integer({ min: 1, max: 100 })
    fc.assert(
      fc.property(fc.option(count), count, count, count, count, (client, usual, plannedLimit, share, modelLimit) => {
        const granted = Math.min(client ?? usual, plannedLimit, share)
        const cap = gatewayOutputCap({ client, usual, plannedLimit, granted, modelLimit })
        const sent = Math.min(granted, modelLimit)
        if (cap === null) expect(sent).toBe(client ?? -1)
        else expect(cap.tokens).toBe(sent)
        if (client === null) expect(cap).not.toBeNull()
      }),
    )
  })
})
