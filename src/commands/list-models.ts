/** `models list`: the models that this configuration offers, with their prices. */

import { readConfig } from '../config/config.ts'
import { knownModels, offeredModels } from '../config/providers.ts'
import { fullName, type Model } from '../core/models/models.ts'
import { pricingFields } from '../core/models/pricing.ts'
import { columns, command, json, print, printJson } from './command.ts'

export const modelListing = command({
  name: 'models list',
  about: 'List the models that this configuration offers; calls no provider',
  operands: {},
  options: {
    prices: { type: 'boolean', about: 'show prices in USD per million tokens' },
    provider: { type: 'string', value: 'ID', about: 'only models of this provider' },
    json,
  },
  async run({ options }) {
    const config = readConfig()
    const models = offeredModels(config.providers, knownModels(config), config.hosts).list.filter(
      model => options.provider === undefined || model.provider === options.provider,
    )
    if (options.json) return printJson({ data: models.map(model => toJson(model, options.prices === true)) })
    const prices = options.prices === true ? ['INPUT', 'CACHED INPUT', 'CACHE WRITE', 'OUTPUT'] : []
    print(
      ...columns([
        ['MODEL', 'CONTEXT', 'MAXIMUM OUTPUT', 'DEPRECATION', ...prices],
        ...models.map(model => [
          fullName(model),
          String(model.contextWindow),
          String(model.maxOutputTokens),
          model.deprecationDate ?? (model.deprecated ? 'deprecated' : '-'),
          ...(options.prices === true ? priceCells(model) : []),
        ]),
      ]),
      '',
      `${models.length} models. Servers that list their own models (Ollama, vLLM, LM Studio) add theirs at the start.`,
      ...(options.prices === true
        ? ['Prices: USD per million tokens. A model with * has other prices for long prompts, hours or service tiers.']
        : []),
    )
  },
})

function priceCells({ pricing }: Model): string[] {
  const mark = pricing.longContext === null && pricing.variants === undefined ? '' : '*'
  return [pricing.input, pricing.cachedInput, pricing.cacheWrite, pricing.output].map(price =>
    price === null ? '-' : `${price}${mark}`,
  )
}

function toJson(model: Model, hasPrices: boolean) {
  return {
    id: fullName(model),
    context_window: model.contextWindow,
    max_output_tokens: model.maxOutputTokens,
    deprecated: model.deprecated,
    deprecation_date: model.deprecationDate,
    ...(hasPrices ? { pricing: pricingFields(model.pricing) } : {}),
  }
}
