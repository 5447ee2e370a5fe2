import type { ProviderSettings } from '../config/providers.ts'
import type { Config } from '../config.ts'
import type { Clock } from '../core/ports/clock.ts'
import { anthropic } from '../providers/anthropic.ts'
import type { ConfiguredProvider } from '../providers/configured-provider.ts'
import type { EmbeddingsAdapter } from '../providers/embeddings.ts'
import { googleEmbeddings } from '../providers/google/embeddings.ts'
import { google } from '../providers/google.ts'
import { openaiEmbeddings } from '../providers/openai/embeddings.ts'
import { openai } from '../providers/openai.ts'
import type { Provider } from '../providers/provider.ts'
import { startSimulator } from '../simulator/simulator.ts'

const formats = {
  openai: openai({ official: true }),
  compatible: openai({ official: false }),
  anthropic,
  google,
} as const satisfies Record<ProviderSettings['format'], Provider>

const embeddings: Readonly<Partial<Record<ProviderSettings['format'], EmbeddingsAdapter>>> = {
  openai: openaiEmbeddings(true),
  compatible: openaiEmbeddings(false),
  google: googleEmbeddings,
}

/** Opens the configured providers, or three simulated providers if no provider is configured. */
export async function openProviders(config: Config, clock: Clock) {
  const endpoints = new Map<string, ConfiguredProvider>()
  const add = ({ id, format, ...access }: ProviderSettings, simulated: boolean) =>
    endpoints.set(id, { id, provider: formats[format], access, simulated, ...embeddingsOf(format) })
  for (const settings of config.providers) add(settings, false)
  if (endpoints.size > 0) return { endpoints, simulator: null }
  const simulator = await startSimulator({ clock, random: Math.random })
  for (const format of ['openai', 'anthropic', 'google'] as const)
    add({ id: format, format, baseUrl: simulator.urls[format], apiKey: 'simulated' }, true)
  return { endpoints, simulator }
}

function embeddingsOf(format: ProviderSettings['format']): Pick<ConfiguredProvider, 'embeddings'> {
  const adapter = embeddings[format]
  return adapter === undefined ? {} : { embeddings: adapter }
}
