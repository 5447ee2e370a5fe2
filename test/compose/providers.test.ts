import { expect, test } from 'bun:test'
import { openProviders } from '../../src/compose/providers.ts'
import { readConfig } from '../../src/config/config.ts'
import type { ProviderSettings } from '../../src/config/providers.ts'
import { systemClock } from '../../src/database/clock.ts'
import { systemNetwork } from '../../src/web/network.ts'

test('providers: divide a quota among the processes of a gateway, and keep the use over a reload', async () => {
  const settings = (requests: number): ProviderSettings => ({
    id: 'own',
    format: 'compatible',
    baseUrl: 'http://127.0.0.1:1/v1',
    apiKey: null,
    pool: {
      keys: [{ name: 'a', apiKey: 'secret', account: 'a', weight: 1, models: null }],
      quotas: new Map([['a', { requests, tokens: null }]]),
    },
  })
  const config = { ...readConfig({}), processes: 4, providers: [settings(8)] }
  const parts = { clock: { ...systemClock, monotonic: () => 1_000 }, network: systemNetwork }
  const { endpoints, replaceProviders } = await openProviders(config, parts)
  const claim = () => endpoints.get('own')?.keys?.claim({ model: 'own/one', tokens: 1, except: new Set() })?.key?.name
  expect([claim(), claim(), claim()]).toEqual(['a', 'a', undefined])
  replaceProviders([settings(8)])
  expect(claim()).toBeUndefined()
})
