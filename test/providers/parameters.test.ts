import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { catalogue } from '../../src/core/catalogue.ts'
import type { Ask } from '../../src/core/chat.ts'
import type { Model } from '../../src/core/models.ts'
import { anthropic } from '../../src/providers/anthropic.ts'
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

function modelOf(adapter: string): Model {
  const provider = adapter === 'compatible' ? 'openai' : adapter
  const model = catalogue.find(one => one.provider === provider && !one.deprecated)
  if (model === undefined) throw new Error(`no model of ${provider} in the catalogue`)
  return model
}

function droppedBy(adapter: string, extras: Ask['extras'], passExtras = false): readonly string[] {
  const ask = askWith({ extras })
  const model = modelOf(adapter)
  const rules = { ...model.parameters, passExtras }
  const access = { baseUrl: 'http://127.0.0.1:9', apiKey: null }
  const question = { ask, model: { ...model, parameters: rules }, outputCap: 100, stream: false }
  return adapters[adapter]?.toRequest(question, access).droppedParameters ?? []
}

describe('known fields beside the ask', () => {
  const extras = { service_tier: 'flex', store: true, verbosity: 'low', prompt_cache_key: 'k', unknown: 1, audio: null }

  test.each(['anthropic', 'google', 'compatible'])('are named where %s does not take them', adapter => {
    expect(droppedBy(adapter, extras).toSorted()).toEqual(['prompt_cache_key', 'service_tier', 'store', 'verbosity'])
  })

  test('are not named where they are sent', () => {
    expect(droppedBy('openai', extras)).toEqual([])
    expect(droppedBy('compatible', extras, true)).toEqual([])
  })
})

test('no name that a caller made up is told as dropped: they travel in a header', () => {
  const anyExtras = fc.dictionary(fc.oneof(fc.string(), fc.constantFrom('store', 'x-evil', 'a\r\nb')), fc.jsonValue())
  fc.assert(
    fc.property(anyExtras, fc.constantFrom(...Object.keys(adapters)), fc.boolean(), (extras, adapter, passExtras) => {
      for (const name of droppedBy(adapter, extras, passExtras)) expect(name).toMatch(/^(store|[a-z]+(_[a-z]+)*)$/)
      const madeUp = Object.keys(extras).filter(name => name !== 'store')
      expect(droppedBy(adapter, extras, passExtras).filter(name => madeUp.includes(name))).toEqual([])
    }),
    { numRuns: 300 },
  )
})
