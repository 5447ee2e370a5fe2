import { expect, test } from 'bun:test'
import { systemClock } from '../../src/composition/clock.ts'
import { systemNetwork } from '../../src/composition/network.ts'
import { openProviders } from '../../src/composition/open-providers.ts'
import type { ProviderSettings } from '../../src/config/providers.ts'
import { readConfig } from '../../src/config.ts'
import type { Quota } from '../../src/models/minute-buckets.ts'

test('provider reload: counts a pool in Redis from its first figures on, and keeps the pool otherwise', async () => {
  const settings = (quotas: readonly (readonly [string, Quota])[], weight = 1): ProviderSettings => {
    const key = { name: 'a', apiKey: 'secret', account: 'a', weight, models: null }
    return {
      id: 'own',
      format: 'compatible',
      baseUrl: 'http://127.0.0.1:1/v1',
      apiKey: null,
      pool: { keys: [key], quotas: new Map(quotas) },
    }
  }
  let scripts = 0
  const shared = {
    async evaluate() {
      scripts++
      return [0, 0, 1]
    },
  }
  const config = { ...readConfig({}), redisUrls: ['redis://127.0.0.1:1'], providers: [settings([])] }
  const { endpoints, replaceProviders } = await openProviders(
    config,
    { clock: systemClock, network: systemNetwork },
    shared,
  )
  const claim = async () => {
    const claimed = await endpoints.get('own')?.keys?.claim({ model: 'own/one', tokens: 1, except: new Set() })
    return claimed?.key?.name
  }
  expect([await claim(), scripts]).toEqual(['a', 0])
  const local = endpoints.get('own')?.keys
  replaceProviders([settings([], 2)])
  expect(endpoints.get('own')?.keys).toBe(local)
  replaceProviders([settings([['a', { requests: 10, tokens: null }]])])
  expect([await claim(), scripts]).toEqual(['a', 1])
  const counted = endpoints.get('own')?.keys
  replaceProviders([settings([['a', { requests: 20, tokens: null }]])])
  expect(endpoints.get('own')?.keys).toBe(counted)
})
