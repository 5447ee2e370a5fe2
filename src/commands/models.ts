/** `models …`: the models that this configuration offers, with their prices, validated without any call. */
import { type Config, readConfig } from '../config/config.ts'
import { knownModels, offeredModels } from '../config/providers.ts'
import { toModel, withChanges } from '../core/models/configured-models.ts'
import { buildCatalog, type Catalog, fullName, getDeprecation, type Model } from '../core/models/models.ts'
import { pricingFields } from '../core/models/pricing.ts'
import { CommandFailure, columns, command, json, print, printJson } from './command.ts'
import { modelSwitchCommands } from './model-switches.ts'
import { updateModels } from './update-models.ts'

const builtIn = [
  { id: 'openai', key: 'OPENAI_API_KEY' },
  { id: 'anthropic', key: 'ANTHROPIC_API_KEY' },
  { id: 'google', key: 'GEMINI_API_KEY' },
] as const

const check = command({
  name: 'models check',
  about: 'Check the catalog and list the configured providers; calls no provider',
  operands: {},
  options: { json },
  async run({ options }) {
    const config = readConfig()
    const configured = config.extraModels.map(({ provider, row }) => toModel(provider, row))
    const everything = buildCatalog([...withChanges(config.publishedModels, config.modelChanges), ...configured])
    const today = new Date().toISOString().slice(0, 10)
    const problems = catalogProblems(everything)
    const providers = getProviders(config, everything)
    const leaving = everything.list
      .filter(model => providers.some(provider => provider.id === model.provider && provider.state !== 'not offered'))
      .filter(model => getDeprecation(model, today) !== 'current')
      .map(model => ({
        model: fullName(model),
        state: getDeprecation(model, today),
        until: model.deprecationDate,
        successor: model.successor,
      }))
    if (options.json) printJson({ problems, providers, leaving, called: false })
    else {
      print(
        ...columns([
          ['PROVIDER', 'MODELS', 'STATE', 'ADDRESS'],
          ...providers.map(provider => [
            provider.id,
            String(provider.models),
            provider.state,
            provider.base_url ?? `set ${provider.needs}`,
          ]),
        ]),
        '',
        ...(leaving.length === 0
          ? []
          : columns([['DEPRECATED', 'STATE', 'DATE', 'SUCCESSOR'], ...leaving.map(leavingRow), ['']])),
        ...problems,
        problems.length === 0 ? 'Catalog check passed.' : '',
        'No provider was called: API keys were not verified.',
      )
    }
    if (problems.length > 0) throw new CommandFailure(`Catalog check failed: ${problems.length} problem(s).`)
  },
})

/** Returns the problems of a catalog, one line each. */
function catalogProblems(catalog: Catalog): string[] {
  return catalog.list.flatMap(model => {
    const name = fullName(model)
    const wrong: string[] = []
    if (catalog.resolve(name) !== model) wrong.push('its name means another model')
    for (const alias of model.aliases)
      if (catalog.resolve(`${model.provider}/${alias}`) !== model) wrong.push(`its alias ${alias} means another model`)
    if (!getPrices(model).every(price => Number.isFinite(price) && price >= 0)) wrong.push('invalid price')
    if (!(model.maxOutputTokens >= 1 && model.maxOutputTokens <= model.contextWindow))
      wrong.push('its output does not fit into its context window')
    const { quality, tokensPerSecond, firstTokenMs } = model.figures
    if (!(quality >= 0 && quality <= 1 && tokensPerSecond > 0 && firstTokenMs >= 0))
      wrong.push('its routing figures are out of range')
    if (model.successor !== null && catalog.resolve(model.successor) === null)
      wrong.push(`its successor ${model.successor} is not in the catalog`)
    if (model.deprecationDate !== null && Number.isNaN(Date.parse(model.deprecationDate)))
      wrong.push('invalid deprecation date')
    return wrong.map(problem => `${name}: ${problem}`)
  })
}

function getPrices({ pricing }: Model): number[] {
  return [pricing, ...(pricing.variants ?? [])]
    .flatMap(rates => [rates, rates.longContext])
    .flatMap(prices => (prices === null ? [] : [prices.input, prices.output, prices.cachedInput, prices.cacheWrite]))
    .filter(price => price !== null)
}

function getProviders(config: Config, catalog: Catalog) {
  const count = (id: string) => catalog.list.filter(model => model.provider === id).length
  const configured = config.providers.map(({ id, baseUrl }) => ({
    id,
    models: count(id),
    state: 'configured',
    base_url: baseUrl,
    needs: null,
  }))
  const others = builtIn
    .filter(({ id }) => !configured.some(item => item.id === id))
    .map(({ id, key }) => ({
      id,
      models: count(id),
      // Without any key the three providers are simulated, so that the first request needs none.
      state: configured.length === 0 ? 'simulated' : 'not offered',
      base_url: null,
      needs: key,
    }))
  return [...configured, ...others]
}

function leavingRow(row: { model: string; state: string; until: string | null; successor: string | null }): string[] {
  return [row.model, row.state, row.until ?? '-', row.successor ?? '-']
}

const modelListing = command({
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

export const modelCommands = [modelListing, check, updateModels, ...modelSwitchCommands]
