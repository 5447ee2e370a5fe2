import { describe, expect, test } from 'bun:test'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Ajv } from 'ajv'
import { fromLitellm } from '../../src/commands/import-litellm.ts'
import { readConfig } from '../../src/config/config.ts'
import { knownModels, offeredModels } from '../../src/config/providers.ts'
import { publishedEmbeddingModels } from '../../src/core/models/embedding-models.ts'
import { buildCatalog } from '../../src/core/models/models.ts'

const catalog = buildCatalog([...readConfig({}).publishedModels, ...publishedEmbeddingModels])
const folder = mkdtempSync(join(tmpdir(), 'gateway-ai-import-'))
const imported = (yaml: string) => fromLitellm(Bun.YAML.parse(yaml), catalog)

/** Starts the configuration of an import: every variable that it names is set. Returns the models that it offers. */
function offered({ file, variables }: ReturnType<typeof imported>) {
  const path = join(folder, `${Bun.randomUUIDv7()}.json`)
  writeFileSync(path, JSON.stringify({ $schema: './gateway.schema.json', ...file }))
  const set = Object.fromEntries(
    variables.map(line => [line.split('=')[0] ?? '', line.split('=').slice(1).join('=') || 'a-secret-of-a-provider']),
  )
  const config = readConfig({ ...set, GATEWAY_CONFIG: path })
  return offeredModels(config.providers, knownModels(config), config.hosts)
}

const large = `
model_list:
  - model_name: gpt-5.5
    litellm_params: { model: openai/gpt-5.5, api_key: os.environ/OPENAI_API_KEY }
  - model_name: smart
    litellm_params: { model: anthropic/claude-haiku-4-5, api_key: os.environ/CLAUDE_KEY, rpm: 50, tpm: 40000 }
  - model_name: smart
    litellm_params: { model: anthropic/claude-haiku-4-5, api_key: os.environ/CLAUDE_KEY_B }
  - model_name: gpt-5.5
    litellm_params:
      model: azure/prod-55
      api_base: https://east.openai.azure.com
      api_version: 2026-02-01
      api_key: os.environ/AZURE_KEY
    model_info: { base_model: azure/gpt-5.5 }
  - model_name: house
    litellm_params: { model: openai/house-7b, api_base: http://10.0.0.7:9000/v1, api_key: os.environ/HOUSE_KEY }
    model_info: { input_cost_per_token: 0.0000002, output_cost_per_token: 0.0000006, max_input_tokens: 32000 }
  - model_name: local
    litellm_params: { model: ollama_chat/llama3.3, api_base: http://127.0.0.1:11434 }
litellm_settings: { drop_params: true, set_verbose: false }
general_settings: { master_key: sk-very-secret-1 }
`

describe('import litellm', () => {
  test('writes a file that the gateway starts with, and that offers the same models', () => {
    const result = imported(large)
    const { resolve } = offered(result)
    const names = ['gpt-5.5', 'smart', 'house'].map(name => {
      const model = resolve(name)
      return model === null ? null : `${model.provider}/${model.id}`
    })
    expect(names).toEqual(['openai/gpt-5.5', 'anthropic/claude-haiku-4-5', 'compatible/house-7b'])
    expect(resolve('gpt-5.5')?.hosts?.map(({ host, upstreamId }) => `${host} ${upstreamId}`)).toEqual([
      'openai gpt-5.5',
      'azure prod-55',
    ])
    expect(resolve('house')).toMatchObject({ contextWindow: 32_000, pricing: { input: 0.2, output: 0.6 } })
    expect(result.file.providers?.find(({ id }) => id === 'anthropic')?.keys).toEqual([
      { name: 'key-1', api_key_env: 'CLAUDE_KEY', rpm: 50, tpm: 40_000 },
      { name: 'key-2', api_key_env: 'CLAUDE_KEY_B' },
    ])
    expect(result.variables).toContain('OLLAMA_BASE_URL=http://127.0.0.1:11434')
  })

  test('writes a file that the printed schema accepts, and the schema finds a wrong one', async () => {
    const printed = Bun.spawn(['bun', join(import.meta.dir, '../../src/cli.ts'), 'config', 'schema'], {
      stderr: 'ignore',
    })
    const isValid = new Ajv({ strict: false }).compile(JSON.parse(await new Response(printed.stdout).text()))
    expect(isValid({ $schema: './gateway.schema.json', ...imported(large).file })).toBe(true)
    expect(isValid({ providers: [{ id: 'Azure', type: 'azur' }] })).toBe(false)
    expect(isValid({ provider: [] })).toBe(false)
  })

  test('names each setting without a counterpart, and what stands in for the others', () => {
    expect(imported(large).notes).toEqual([
      'litellm_settings.drop_params: always on; x-gateway-dropped-params names the dropped fields',
      'litellm_settings.set_verbose: no counterpart',
      'general_settings.master_key: a management key (docs/guides/automation.md), and API keys for chats',
    ])
  })

  test('leaves the models of a preset to the preset, unless the file names them otherwise', () => {
    const row = (name: string) =>
      `model_list: [{ model_name: ${name}, litellm_params: { model: groq/openai/gpt-oss-20b, api_key: os.environ/GROQ_API_KEY } }]`
    expect(imported(row('openai/gpt-oss-20b'))).toEqual({ file: {}, variables: ['GROQ_API_KEY'], notes: [] })
    expect(offered(imported(row('fast'))).resolve('fast')?.id).toBe('openai/gpt-oss-20b')
  })

  test('finds models for embeddings, which have no other names', () => {
    const row = 'model_list: [{ model_name: embed, litellm_params: { model: text-embedding-3-small } }]'
    expect(imported(row)).toEqual({
      file: {},
      variables: ['OPENAI_API_KEY'],
      notes: ['embed: requests name it openai/text-embedding-3-small'],
    })
  })

  test('copies no secret of the file', () => {
    const key = 'sk-proj-0123456789abcdef'
    const result = imported(
      `model_list: [{ model_name: a, litellm_params: { model: gpt-5.5, api_key: ${key} } }]\nenvironment_variables: { X: ${key} }`,
    )
    expect(JSON.stringify(result)).not.toContain(key)
    expect(result.notes[0]).toBe('a: its key is written in the file; put it into a variable instead')
  })

  test('invents no price: a model without one is named and left out', () => {
    const { file, notes } = imported(
      'model_list: [{ model_name: b, litellm_params: { model: openai/b, api_base: "https://b.example/v1" } }]',
    )
    expect(notes).toEqual(['b: add compatible/b to `models` with its `pricing`'])
    expect(file.providers?.[0]?.models).toBeUndefined()
  })

  test.each([
    ['bedrock/us.anthropic.claude-haiku-4-5-20251001-v1:0', 'aws_region_name: us-east-1', 'bedrock'],
    ['vertex_ai/claude-haiku-4-5@20251001', 'vertex_project: acme, vertex_location: europe-west1', 'vertex'],
  ])('finds the catalog model behind %s', (model, place, type) => {
    const { file } = imported(
      `model_list: [{ model_name: claude-haiku-4-5, litellm_params: { model: "${model}", ${place} } }]`,
    )
    expect(file.providers).toMatchObject([{ type, hosts: [{ model: 'anthropic/claude-haiku-4-5' }] }])
  })

  test('rejects a file of another program with the place of the fault', () => {
    expect(() => imported('services: { a: 1 }')).toThrow('This is no configuration of LiteLLM: /model_list')
    expect(() => imported('model_list: [{ model_name: a }]')).toThrow('/model_list/0/litellm_params')
  })
})
