import type { ProviderSettings } from '../config/providers.ts'
import type { Config } from '../config.ts'
import type { Clock } from '../core/ports/clock.ts'
import { anthropic } from '../providers/anthropic.ts'
import { google } from '../providers/google.ts'
import { openai } from '../providers/openai.ts'
import type { ConfiguredProvider, Provider } from '../providers/provider.ts'
import { startSimulator } from '../simulator/simulator.ts'

const formats = {
  openai: openai({ official: true }),
  compatible: openai({ official: false }),
  anthropic,
  google,
} as const satisfies Record<ProviderSettings['format'], Provider>

/** The providers that are configured; where none is, three simulated ones. */
export async function openProviders(config: Config, clock: Clock) {
  const endpoints = new Map<string, ConfiguredProvider>()
  const add = ({ id, format, ...access }: ProviderSettings, simulated: boolean) =>
    endpoints.set(id, { id, provider: formats[format], access, simulated })
  for (const settings of config.providers) add(settings, false)
  if (endpoints.size > 0) return { endpoints, simulator: null }
  const simulator = await startSimulator({ clock, random: Math.random })
  for (const format of ['openai', 'anthropic', 'google'] as const)
    add({ id: format, format, baseUrl: simulator.urls[format], apiKey: 'simulated' }, true)
  return { endpoints, simulator }
}
