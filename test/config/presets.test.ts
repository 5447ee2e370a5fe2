/** Presets: one variable is enough, and the file only says what differs. */
import { afterAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Environment, readConfig } from '../../src/config/config.ts'
import { presetModels, presets } from '../../src/config/presets.ts'
import { knownModels } from '../../src/config/providers.ts'
import { toModel } from '../../src/core/models/configured-models.ts'
import { ratesAt } from '../../src/core/models/pricing.ts'

const folder = mkdtempSync(join(tmpdir(), 'gateway-presets-'))
afterAll(() => rmSync(folder, { recursive: true }))

function read(environment: Environment, providers?: readonly unknown[]) {
  const file = join(folder, 'config.json')
  writeFileSync(file, JSON.stringify({ providers }))
  return readConfig({ GATEWAY_DATA_DIR: folder, ...(providers && { GATEWAY_CONFIG: file }), ...environment })
}

const hosted = presets.filter(({ url }) => url !== null)
const local = presets.filter(({ url }) => url === null)

describe('presets', () => {
  test.each(hosted)('$id needs only its key', ({ id, key, url, models }) => {
    const { providers, extraModels } = read({ [key]: 'secret' })
    expect(providers).toMatchObject([{ id, format: 'compatible', baseUrl: url, apiKey: 'secret' }])
    expect(extraModels.map(({ row }) => row.id)).toEqual(models.map(row => row.id))
  })

  test.each(hosted)('$id has published prices with their source and day', preset => {
    const models = knownModels(read({ [preset.key]: 'secret' })).filter(({ provider }) => provider === preset.id)
    expect(new Set(models.map(({ pricingSource }) => pricingSource))).toEqual(new Set([preset.source]))
    expect(preset.source).toMatch(/^[\w.-]+\.\w+.*, 2026-\d{2}-\d{2}/)
    for (const { pricing } of presetModels(preset)) {
      expect(pricing.input_per_mtok).toBeGreaterThan(0)
      expect(pricing.output_per_mtok).toBeGreaterThan(pricing.input_per_mtok)
      expect(pricing.cached_input_per_mtok ?? 0).toBeLessThan(pricing.input_per_mtok)
    }
  })

  test.each([
    ['deepseek-flash', 0.15, 0.6, 0.003],
    ['deepseek-v4-pro', 0.66, 1.98, 0.022],
  ])('%s costs half outside the peak hours of DeepSeek', (id, input, output, cachedInput) => {
    const row = presets
      .flatMap(preset => (preset.id === 'deepseek' ? presetModels(preset) : []))
      .find(item => item.id === id)
    if (row === undefined) throw new Error(`no ${id} in the preset`)
    const { pricing } = toModel('deepseek', row)
    const at = (time: string) => ratesAt(pricing, { at: Date.parse(time), tier: null })
    expect(at('2026-11-28T08:00Z')).toMatchObject({ input, output, cachedInput })
    expect(at('2026-11-27T08:00Z')).toMatchObject({
      input: 2 * input,
      output: 2 * output,
      cachedInput: 2 * cachedInput,
    })
    expect(at('2026-11-27T05:00Z')).toBe(pricing)
  })

  test.each(local)('$id needs only its base URL, and sends a key only if there is one', ({ id, base, key }) => {
    expect(read({ [base]: 'http://127.0.0.1:1234/' }).providers).toMatchObject([
      { id, format: 'compatible', baseUrl: 'http://127.0.0.1:1234', apiKey: null, discovers: true },
    ])
    expect(read({ [base]: 'http://10.0.0.7:8000/v1', [key]: 'k' }).providers[0]?.apiKey).toBe('k')
    expect(read({ [key]: 'k' }).providers).toEqual([])
  })

  test('take their base URL from a variable, with the deviations of the preset', () => {
    const environment = { MISTRAL_API_KEY: 'k', MISTRAL_BASE_URL: 'https://proxy.example/mistral/v1' }
    expect(read(environment).providers).toMatchObject([{ baseUrl: environment.MISTRAL_BASE_URL, dialect: 'mistral' }])
  })

  test('warn about a base URL without a key', () => {
    const { providers, warnings } = read({ GROQ_BASE_URL: 'https://proxy.example/v1' })
    expect(providers).toEqual([])
    expect(warnings).toContain(
      'GROQ_BASE_URL is set without GROQ_API_KEY: provider groq is disabled; set both or neither',
    )
  })

  test('take keys, models and hosts from the file under their name', () => {
    const keys = [
      { name: 'a', api_key_env: 'A' },
      { name: 'b', api_key_env: 'B' },
    ]
    const pooled = read({ A: 'x', B: 'y' }, [{ id: 'groq', keys }])
    expect(pooled.providers).toMatchObject([{ id: 'groq', baseUrl: 'https://api.groq.com/openai/v1', apiKey: 'x' }])
    expect(pooled.extraModels.length).toBe(3)
    const models = [{ id: 'm', pricing: { input_per_mtok: 1, output_per_mtok: 2 } }]
    const own = read({ XAI_API_KEY: 'k' }, [{ id: 'xai', models }])
    expect(own.providers).toMatchObject([{ id: 'xai', apiKey: 'k' }])
    expect(own.extraModels.map(({ row }) => row.id)).toEqual(['m'])
    const hosts = [{ model: 'anthropic/claude-haiku-4-5', id: 'anthropic/claude-haiku-4.5' }]
    expect(read({ OPENROUTER_API_KEY: 'k' }, [{ id: 'openrouter', hosts }]).extraModels).toEqual([])
  })

  test('yield to a complete provider of the file with their name', () => {
    const models = [{ id: 'm', pricing: { input_per_mtok: 1, output_per_mtok: 2 } }]
    const provider = { id: 'groq', base_url: 'https://other.example/v1', api_key_env: 'GROQ_API_KEY', models }
    const { providers, extraModels } = read({ GROQ_API_KEY: 'k' }, [provider])
    expect(providers).toMatchObject([{ baseUrl: 'https://other.example/v1' }])
    expect(extraModels.length).toBe(1)
  })

  test('report a missing key or address', () => {
    const getProblem = (provider: object) => {
      try {
        read({}, [provider])
        return ''
      } catch (cause) {
        return String(cause)
      }
    }
    expect(getProblem({ id: 'groq' })).toContain('provider "groq" names GROQ_API_KEY, which is not set')
    expect(getProblem({ id: 'vllm' })).toContain('provider "vllm" has no `base_url`; add it')
  })
})
