import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { gatewayOutputCap } from '../../../src/core/chat/output-cap.ts'

const caps = { client: null, usual: 16_384, plannedLimit: 64_000, granted: 16_384, modelLimit: 64_000 }

describe('gatewayOutputCap', () => {
  test('names the default, the limit of the model, or the share of the account', () => {
    expect(gatewayOutputCap(caps)).toEqual({ tokens: 16_384, limitedBy: 'default' })
    expect(gatewayOutputCap({ ...caps, plannedLimit: 8_000, granted: 8_000, modelLimit: 8_000 })).toEqual({
      tokens: 8_000,
      limitedBy: 'model_limit',
    })
    expect(gatewayOutputCap({ ...caps, granted: 500 })).toEqual({ tokens: 500, limitedBy: 'account_remaining' })
  })

  test('names the limit of the fallback that is asked where it is lower than what was reserved', () => {
    expect(gatewayOutputCap({ ...caps, modelLimit: 4_000 })).toEqual({ tokens: 4_000, limitedBy: 'model_limit' })
  })

  test('is null where the cap of the client is in force, and not where less was granted', () => {
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

  test('tells the cap that is sent upstream, and never one above it, whatever the limits', () => {
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
