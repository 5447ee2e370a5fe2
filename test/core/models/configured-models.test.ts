import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import fc from 'fast-check'
import {
  changeProblems,
  configuredModelSchema,
  modelChangeSchema,
  toModel,
  withChanges,
} from '../../../src/core/models/configured-models.ts'
import { buildCatalog } from '../../../src/core/models/models.ts'
import { priceVariant } from '../../../src/core/models/pricing.ts'
import { getCost } from '../../../src/core/usage/money.ts'
import { GatewayError } from '../../../src/core/validation/errors.ts'
import { validate } from '../../../src/core/validation/validate.ts'
import { catalog } from '../../../src/models/catalog.ts'
import { modelNamed } from '../../harness/model.ts'

setDefaultTimeout(60_000)

const pricing = { input_per_mtok: 0.5, output_per_mtok: 1 }

describe('configured model', () => {
  const check = (value: unknown) => validate(configuredModelSchema, value)

  test('requires only an ID and a price, and then accepts the parameters of every compatible server', () => {
    const model = toModel('groq', check({ id: 'vendor/small', pricing: { input_per_mtok: 0, output_per_mtok: 0 } }))
    expect(model).toMatchObject({
      id: 'vendor/small',
      provider: 'groq',
      tier: 'economy',
      deprecated: false,
      capabilities: { vision: false, tools: true, jsonSchema: false, reasoning: false, streaming: true },
      parameters: { outputCapField: 'max_tokens', systemRole: 'system', streamOptions: false, maximumChoices: 1 },
      figures: { estimated: true },
    })
    expect(model.pricing).toEqual({ input: 0, output: 0, cachedInput: null, cacheWrite: null, longContext: null })
  })

  test('accepts JSON schemas in either way of configuring them', () => {
    for (const said of [{ capabilities: { json_schema: true } }, { parameters: { response_format: 'json_schema' } }])
      expect(toModel('vllm', check({ id: 'big', pricing, ...said }))).toMatchObject({
        capabilities: { jsonSchema: true },
        parameters: { responseFormat: 'json_schema' },
      })
  })

  test('accepts the parameters that the operator configures', () => {
    const model = toModel(
      'vllm',
      check({
        id: 'big',
        pricing: { ...pricing, cached_input_per_mtok: 0.1, long_context: { above_input_tokens: 1_000, ...pricing } },
        context_window: 8_192,
        capabilities: { vision: true },
        parameters: {
          response_format: 'json_schema',
          efforts: ['high', 'low'],
          maximum_choices: 4,
          stream_options: true,
        },
        deprecation_date: '2027-01-01',
        quality: 0.5,
      }),
    )
    expect(model).toMatchObject({
      maxOutputTokens: 8_192,
      capabilities: { vision: true, jsonSchema: true, reasoning: true },
      parameters: { efforts: ['low', 'high'], reasoning: { kind: 'effort' }, maximumChoices: 4, streamOptions: true },
      pricing: { cachedInput: 0.1, longContext: { aboveInputTokens: 1_000, input: 0.5, cachedInput: null } },
      deprecated: true,
      figures: { quality: 0.5, estimated: false },
    })
  })

  test.each<[object, string]>([
    [{ id: 'x' }, 'pricing'],
    [{ id: 'x', pricing: { input_per_mtok: 1 } }, 'pricing.output_per_mtok'],
    [{ id: 'x', pricing: { input_per_mtok: -1, output_per_mtok: 1 } }, 'pricing.input_per_mtok'],
    [{ id: '', pricing }, 'id'],
    [{ id: 'x', pricing, tier: 'free' }, 'tier'],
    [{ id: 'x', pricing, deprecation_date: 'soon' }, 'deprecation_date'],
    [{ id: 'x', pricing, parameters: { temperatur: true } }, 'parameters.temperatur'],
  ])('%j is rejected with the field %s', (row, param) => {
    expect(findParam(() => check(row))).toBe(param)
  })

  test('resolves by its own name', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1, maxLength: 100, unit: 'binary' }), id => {
        const model = toModel('local', { id, pricing })
        expect(buildCatalog([...catalog, model]).resolve(`local/${id}`)).toBe(model)
      }),
    )
  })
})

describe('catalog change', () => {
  const check = (value: unknown) => validate(modelChangeSchema, value)
  const after = (...rows: object[]) => withChanges(catalog, rows.map(check))
  const problems = (...rows: object[]) => changeProblems(catalog, rows.map(check))
  const opus = modelNamed('claude-opus-5-5')

  test('returns the published catalog without changes', () => {
    expect(after()).toEqual([...catalog])
  })

  test('replaces the given figures and keeps all others', () => {
    const rows = {
      pricing,
      capabilities: { vision: false },
      parameters: { prefill: true },
      quality: 0.9,
      aliases: ['opus'],
    }
    const changed = after({ provider: 'anthropic', id: opus.id, ...rows })
    const model = changed.find(({ id }) => id === opus.id)
    expect(model).toEqual({
      ...opus,
      pricing: { input: 0.5, output: 1, cachedInput: 0.025, cacheWrite: 0.625, longContext: null },
      pricingSource: 'config',
      capabilities: { ...opus.capabilities, vision: false },
      parameters: { ...opus.parameters, prefill: true },
      aliases: [...opus.aliases, 'opus'],
      figures: { ...opus.figures, quality: 0.9, estimated: false },
    })
    expect(changed.filter(item => item !== model)).toEqual(catalog.filter(item => item !== opus))
    expect(model && getCost(model.pricing, { ...noTokens, outputTokens: 1_000_000 })).toBe(100_000_000)
  })

  test('keeps the ratio of prices that a change does not name', () => {
    const tier = { aboveInputTokens: 200_000, input: 4, output: 18, cachedInput: 0.4, cacheWrite: 5 }
    const own = { ...opus, pricing: { input: 2, output: 12, cachedInput: 0.2, cacheWrite: 2.5, longContext: tier } }
    const priced = (fields: object) =>
      withChanges([own], [check({ provider: own.provider, id: own.id, pricing: fields })])[0]?.pricing
    expect(priced({ input_per_mtok: 2, output_per_mtok: 12 })).toEqual(own.pricing)
    expect(priced({ input_per_mtok: 1, output_per_mtok: 24 })).toEqual({
      input: 1,
      output: 24,
      cachedInput: 0.1,
      cacheWrite: 1.25,
      longContext: { aboveInputTokens: 200_000, input: 2, output: 36, cachedInput: 0.2, cacheWrite: 2.5 },
    })
    expect(priced({ input_per_mtok: 0, output_per_mtok: 12 })).toMatchObject({
      input: 0,
      cachedInput: 0,
      cacheWrite: 0,
    })
    const named = { above_input_tokens: 1_000, input_per_mtok: 9, output_per_mtok: 9 }
    expect(priced({ input_per_mtok: 1, output_per_mtok: 12, cached_input_per_mtok: 0.7, long_context: named })).toEqual(
      {
        input: 1,
        output: 12,
        cachedInput: 0.7,
        cacheWrite: 1.25,
        longContext: { aboveInputTokens: 1_000, input: 9, output: 9, cachedInput: null, cacheWrite: null },
      },
    )
  })

  test('replaces the whole table of prices by time and tier, so that a flat price is flat', () => {
    const variants = [
      priceVariant({ serviceTier: 'flex' }, { ...opus.pricing, input: 1 }),
      priceVariant({ hoursUtc: ['01:00-04:00'] }, { ...opus.pricing, input: 90 }),
    ]
    const own = { ...opus, pricing: { ...opus.pricing, variants } }
    const priced = (fields: object) =>
      withChanges([own], [check({ provider: own.provider, id: own.id, pricing: fields })])[0]?.pricing
    expect(priced(pricing)?.variants).toBeUndefined()
    const named = [{ service_tier: 'batch', input_per_mtok: 3, output_per_mtok: 4 }]
    expect(priced({ ...pricing, variants: named })?.variants).toMatchObject([{ serviceTier: 'batch', input: 3 }])
    expect(withChanges([own], [check({ provider: own.provider, id: own.id, quality: 0.5 })])[0]?.pricing).toEqual(
      own.pricing,
    )
  })

  test('adds a model like another with its own name, price and tier, without published evidence', () => {
    const row = {
      provider: 'anthropic',
      id: 'claude-opus-6',
      like: opus.id,
      pricing: { input_per_mtok: 20, output_per_mtok: 90 },
    }
    expect(problems(row)).toEqual([])
    const model = after(row).at(-1)
    expect(model).toMatchObject({
      id: 'claude-opus-6',
      displayName: 'claude-opus-6',
      provider: 'anthropic',
      tier: 'premium',
      pricing: { input: 20, output: 90, longContext: null },
      contextWindow: opus.contextWindow,
      aliases: [],
      marketplaceAliases: [],
      qualityScores: [],
      deprecated: false,
      figures: { estimated: true },
    })
    expect(model?.parameters).toEqual(opus.parameters)
    expect(model?.evidence).toBeUndefined()
  })

  test('reports an impossible change and never makes a model without a price routable', () => {
    const row = { provider: 'openai', id: 'gpt-7' }
    expect(problems(row)).toEqual([
      'models.0: openai/gpt-7 is new and has no `pricing`: a model without a known price is not routable',
      'models.0: openai/gpt-7 is new: `like` must name a model of openai in the catalog, whose parameters it supports',
    ])
    expect(problems({ ...row, pricing, like: opus.id })).toHaveLength(1)
    expect(problems({ ...row, like: 'gpt-5.5' })).toHaveLength(1)
    expect(problems({ provider: 'openai', id: 'gpt-5.5', like: 'gpt-5.5' })).toHaveLength(1)
    expect(problems({ provider: 'openai', id: 'gpt-5.5' }, { provider: 'openai', id: 'gpt-5.5' })).toHaveLength(1)
    for (const incomplete of [
      row,
      { ...row, pricing },
      { ...row, like: 'gpt-5.5' },
      { ...row, pricing, like: opus.id },
    ])
      expect(after(incomplete)).toEqual([...catalog])
  })
})

const noTokens = { inputTokens: 0, cachedInputTokens: 0, cacheWriteTokens: 0, outputTokens: 0, reasoningTokens: 0 }

function findParam(act: () => unknown): string | null {
  try {
    act()
    return null
  } catch (thrown) {
    return thrown instanceof GatewayError ? thrown.param : String(thrown)
  }
}
