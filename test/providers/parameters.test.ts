import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { ChatRequest } from '../../src/core/chat/chat.ts'
import type { Model } from '../../src/core/models/models.ts'
import { catalog } from '../../src/models/catalog.ts'
import { anthropic } from '../../src/providers/anthropic.ts'
import { sortExtras } from '../../src/providers/extras.ts'
import { google } from '../../src/providers/google.ts'
import { openai } from '../../src/providers/openai.ts'
import type { Provider } from '../../src/providers/provider.ts'
import { askWith } from '../harness/ask.ts'

const adapters: Readonly<Record<string, Provider>> = {
  openai: openai({ official: true }),
  compatible: openai({ official: false }),
  anthropic,
  google,
}

function getModel(adapter: string): Model {
  const provider = adapter === 'compatible' ? 'openai' : adapter
  const model = catalog.find(item => item.provider === provider && !item.deprecated)
  if (model === undefined) throw new Error(`no model of ${provider} in the catalogue`)
  return model
}

function droppedBy(
  adapter: string,
  extras: ChatRequest['extras'],
  passExtras = false,
  extraFields: readonly string[] = [],
): readonly string[] {
  const request = askWith({ extras })
  const model = getModel(adapter)
  const rules = { ...model.parameters, passExtras }
  const access = { baseUrl: 'http://127.0.0.1:9', apiKey: null, extraFields }
  const question = { request, model: { ...model, parameters: rules }, outputCap: 100, stream: false }
  return adapters[adapter]?.toRequest(question, access).droppedParameters ?? []
}

describe('dropped parameters', () => {
  const extras = { service_tier: 'flex', store: true, verbosity: 'low', prompt_cache_key: 'k', unknown: 1, audio: null }
  const all = ['service_tier', 'store', 'verbosity', 'prompt_cache_key', 'unknown']

  test.each(['anthropic', 'google', 'compatible'])('include fields that %s does not support', adapter => {
    expect(droppedBy(adapter, extras)).toEqual(all)
  })

  test('exclude fields that are sent', () => {
    expect(droppedBy('openai', extras)).toEqual(['store', 'unknown'])
    expect(droppedBy('compatible', extras, true)).toEqual(['store', 'unknown'])
  })

  test('include a service tier without a price of its own', () => {
    const withTier = (service_tier: string) => ({ service_tier })
    for (const adapter of ['openai', 'compatible']) {
      expect(droppedBy(adapter, withTier('flex'), true)).toEqual([])
      expect(droppedBy(adapter, withTier('priority'), true)).toEqual(['service_tier'])
    }
  })

  test('include a service tier without a price when the operator lists the field', () => {
    const toTier = (service_tier: string) => droppedBy('compatible', { service_tier }, true, ['service_tier'])
    expect(['default', 'flex', 'priority', 'ultra'].map(toTier)).toEqual([[], [], ['service_tier'], ['service_tier']])
  })
})

test('droppedNames: returns only names allowed in a header, at most 32', () => {
  const anyExtras = fc.dictionary(fc.oneof(fc.string(), fc.constantFrom('store', 'x-evil', 'a\r\nb')), fc.jsonValue())
  fc.assert(
    fc.property(anyExtras, fc.constantFrom(...Object.keys(adapters)), fc.boolean(), (extras, adapter, passExtras) => {
      for (const name of droppedBy(adapter, extras, passExtras)) expect(name).toMatch(/^[\w.-]{1,64}$/)
    }),
    { numRuns: 300 },
  )
  const many = Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`field_${index}`, 1]))
  expect(droppedBy('anthropic', many)).toHaveLength(32)
})

/** Headers that a proxy or relay behind the configured URL would interpret. */
const orders = {
  api_base: 'https://evil.example',
  base_url: 'https://evil.example',
  api_key: 'stolen',
  extra_headers: { authorization: 'x' },
  extra_body: { model: 'other' },
  models: ['other/model'],
  route: 'fallback',
  provider: { order: ['x'] },
  plugins: [{ id: 'web' }],
  transforms: ['middle-out'],
  fallbacks: ['other'],
  mock_response: 'x',
  custom_llm_provider: 'x',
  chat_template: '{{ 1 }}',
  chat_template_kwargs: { chat_template: 'x' },
  logits_processors: [{ qualname: 'os.system' }],
  mm_processor_kwargs: {},
  lora_request: {},
  kv_transfer_params: {},
  priority: -100,
  best_of: 20,
  use_beam_search: true,
  web_search_options: {},
  tools_config: {},
  constructor: 1,
  hasOwnProperty: 1,
}

describe('sortExtras', () => {
  test.each(['openai', 'anthropic', 'google', 'compatible'] as const)(
    'drops and reports fields that could redirect or reprice a request to %s',
    kind => {
      const { sent, dropped } = sortExtras(kind, orders)
      expect(sent).toEqual({})
      expect(dropped).toEqual(Object.keys(orders))
    },
  )

  test('sends any value of a field that the operator lists, and never a field of the gateway', () => {
    const extras = { plugins: [{ id: 'web' }], models: ['x'], model: 'y' }
    expect(sortExtras('compatible', extras, { listed: ['plugins', 'model'] })).toEqual({
      sent: { plugins: [{ id: 'web' }] },
      dropped: ['models'],
    })
  })

  test.each([
    { top_k: { api_base: 'x' } },
    { top_k: [1] },
    { stop_token_ids: [{ a: 1 }] },
    { reasoning: { effort: 'low', api_base: 'x' } },
    { thinking: { type: { a: 1 } } },
    { thinking: 'on' },
  ])('drops a listed field with an invalid value: %j', extras => {
    expect(sortExtras('compatible', extras)).toEqual({ sent: {}, dropped: Object.keys(extras) })
  })

  test('sends listed fields in the forms that servers document', () => {
    const extras = {
      top_k: 5,
      min_p: 0.1,
      stop_token_ids: [1, 2],
      guided_json: { type: 'object' },
      thinking: { type: 'disabled' },
      reasoning: { effort: 'low', exclude: true },
    }
    expect(sortExtras('compatible', extras)).toEqual({ sent: extras, dropped: [] })
  })
})
