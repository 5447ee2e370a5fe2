/**
 * `import litellm`: prints the configuration file that serves what a `config.yaml` of LiteLLM serves, and names the rest.
 * Field names of LiteLLM are those of https://docs.litellm.ai/docs/proxy/config_settings, read on 2026-11-28.
 */
import { readFileSync } from 'node:fs'
import { type Static, Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { readConfig } from '../config/config.ts'
import type { ConfigFile } from '../config/config-file.ts'
import { type Preset, presets } from '../config/presets.ts'
import { builtIn } from '../config/providers.ts'
import type { ConfiguredModel } from '../core/models/configured-models.ts'
import { publishedEmbeddingModels } from '../core/models/embedding-models.ts'
import { buildCatalog, type Catalog, type Model } from '../core/models/models.ts'
import { systemErrorText } from '../core/validation/operator-errors.ts'
import { CommandFailure, command, print } from './command.ts'
import litellmSettings from './litellm-settings.json'

const optionalText = Type.Optional(Type.String())
const optionalNumber = Type.Optional(Type.Number({ minimum: 0 }))
const deploymentSchema = Type.Object({
  model_name: Type.String({ minLength: 1 }),
  litellm_params: Type.Object({
    model: Type.String({ minLength: 1 }),
    ...{ api_base: optionalText, api_key: optionalText, api_version: optionalText, aws_region_name: optionalText },
    ...{ vertex_project: optionalText, vertex_location: optionalText, rpm: optionalNumber, tpm: optionalNumber },
    ...{ input_cost_per_token: optionalNumber, output_cost_per_token: optionalNumber },
  }),
  model_info: Type.Optional(
    Type.Object({
      ...{ base_model: optionalText, input_cost_per_token: optionalNumber, output_cost_per_token: optionalNumber },
      ...{ max_input_tokens: optionalNumber, max_output_tokens: optionalNumber },
    }),
  ),
})
const configSchema = Type.Object({ model_list: Type.Array(deploymentSchema) })

type Provider = ConfigFile['providers'][number]
type Host = NonNullable<Provider['hosts']>[number]
type BuiltIn = (typeof builtIn)[number]['id']
type Deployment = Static<typeof deploymentSchema> & {
  /** Its provider in LiteLLM, and the rest of its model name. */
  readonly kind: string
  readonly model: string
  /** Variable of its key. */
  readonly variable: string | null
}

type Imported = {
  readonly file: Partial<ConfigFile>
  /** Variables that the gateway needs, with a value if it is no secret. */
  readonly variables: readonly string[]
  /** Settings without counterpart, and decisions that are left. */
  readonly notes: readonly string[]
}

/** Providers of LiteLLM under another name here. */
const renamed: Readonly<Record<string, string>> = {
  ...{ gemini: 'google', text_completion_openai: 'openai', together_ai: 'together', fireworks_ai: 'fireworks' },
  ...{ ollama_chat: 'ollama', hosted_vllm: 'vllm', lm_studio: 'lm-studio', azure_ai: 'azure', vertex_ai: 'vertex' },
  ...{ bedrock_converse: 'bedrock' },
}
const clouds = ['azure', 'bedrock', 'vertex'] as const

/** What stands in for the settings of LiteLLM, by section or by `section.field`. */
const counterparts: Readonly<Record<string, string>> = litellmSettings

/** Translates a parsed configuration of LiteLLM. Throws `CommandFailure` for another file. */
export function fromLitellm(config: unknown, catalog: Catalog): Imported {
  if (!Value.Check(configSchema, config)) {
    const [fault] = Value.Errors(configSchema, config)
    throw new CommandFailure(`This is no configuration of LiteLLM: ${fault?.path || '/'}: ${fault?.message}.`)
  }
  const variables = new Set<string>()
  const notes = new Set<string>()
  const models: ConfigFile['models'] = []
  const deployments = config.model_list.map(row => {
    const [first = '', ...rest] = row.litellm_params.model.split('/')
    const kind = rest.length === 0 ? 'openai' : (renamed[first.replaceAll('-', '_')] ?? first)
    const model = (rest.length === 0 ? first : rest.join('/')).replace(/^(converse|responses|chat)\//, '')
    const [, named = null] = /^os\.environ\/(\w+)$/.exec(row.litellm_params.api_key ?? '') ?? []
    const usual = usualVariable(kind)
    if (row.litellm_params.api_key !== undefined && named === null)
      notes.add(`${row.model_name}: its key is written in the file; put it into a variable instead`)
    return { ...row, kind, model, variable: named ?? usual }
  })
  const groups = Map.groupBy(deployments, ({ kind, litellm_params: at }) =>
    JSON.stringify([kind, at.api_base, at.api_version, at.aws_region_name, at.vertex_project, at.vertex_location]),
  )
  const providers: Provider[] = []
  for (const group of groups.values()) {
    const [{ kind, litellm_params: at }] = group as [Deployment, ...Deployment[]]
    const isBuiltIn = builtIn.some(({ id }) => id === kind) && at.api_base === undefined
    const preset = at.api_base === undefined || isLocal(kind) ? presets.find(({ id }) => id === kind) : undefined
    const cloud = clouds.find(type => type === kind)
    for (const { variable } of group) if (variable !== null) variables.add(variable)
    if (preset?.url === null && at.api_base !== undefined) variables.add(`${preset.base}=${at.api_base}`)
    if (cloud === undefined && !isBuiltIn && preset === undefined && at.api_base === undefined) {
      const names = group.map(row => row.model_name).join(', ')
      notes.add(`${names}: add the \`base_url\` of ${kind}, a provider without preset`)
      continue
    }
    const isPlain = isBuiltIn || preset !== undefined
    const id = isPlain ? kind : freeName(kind === 'openai' ? 'compatible' : kind, providers)
    const found = findModels({ group, catalog, id, preset, isBuiltIn })
    for (const note of found.notes) notes.add(note)
    for (const { provider, id, alias } of found.aliases) addAlias(models, { provider, id }, alias)
    const provider: Provider = {
      id,
      ...(cloud !== undefined && { type: cloud }),
      ...(!isPlain && at.api_base !== undefined && { base_url: at.api_base }),
      ...(at.api_version !== undefined && cloud === 'azure' && { api_version: at.api_version }),
      ...(at.aws_region_name !== undefined && { region: at.aws_region_name }),
      ...(at.vertex_project !== undefined && { project: at.vertex_project }),
      ...(at.vertex_location !== undefined && { location: at.vertex_location }),
      ...keysIn(getPool(group), isPlain ? usualVariable(kind) : null),
      ...(found.rows.length > 0 && { models: found.rows }),
      ...(found.hosts.length > 0 && { hosts: found.hosts }),
    }
    if (Object.keys(provider).length > 1) providers.push(provider)
  }
  return {
    file: { ...(providers.length > 0 && { providers }), ...(models.length > 0 && { models }) },
    variables: [...variables],
    notes: [...notes, ...getOtherSettings(config)],
  }
}

type Group = {
  readonly group: readonly Deployment[]
  readonly catalog: Catalog
  readonly id: string
  readonly preset: Preset | undefined
  readonly isBuiltIn: boolean
}

/** Returns the models of one provider: those of the catalog as hosts and aliases, the others as models of its own. */
function findModels({ group, catalog, id, preset, isBuiltIn }: Group) {
  const rows: ConfiguredModel[] = []
  const hosts: Host[] = []
  const notes: string[] = []
  const aliases: { readonly provider: BuiltIn; readonly id: string; readonly alias: string }[] = []
  for (const row of group.filter(({ model }) => model !== '*')) {
    const known = findModel(catalog, row, id)
    if (known !== null) {
      if (known.provider !== id) hosts.push({ model: `${known.provider}/${known.id}`, id: row.model })
      const provider = builtIn.find(own => own.id === known.provider)?.id
      if (catalog.resolve(row.model_name) === known) continue
      if (provider === undefined || known.embedding !== undefined)
        notes.push(`${row.model_name}: requests name it ${known.provider}/${known.id}`)
      else aliases.push({ provider, id: known.id, alias: row.model_name })
    } else if (isBuiltIn) {
      notes.push(
        `${row.model_name}: ${id}/${row.model} is not in the catalog; add it to \`models\` with \`like\` and \`pricing\``,
      )
    } else if (preset?.url !== null) {
      const model = configuredModel(row, preset)
      if (model === null) notes.push(`${row.model_name}: add ${id}/${row.model} to \`models\` with its \`pricing\``)
      else if (rows.every(other => other.id !== model.id)) rows.push(model)
    }
  }
  // The models of a preset need no line unless the file adds to them.
  const isAsPreset = rows.every(row => preset?.models.includes(row) === true)
  return { rows: isAsPreset ? [] : rows, hosts, notes, aliases }
}

const isLocal = (kind: string) => presets.some(({ id, url }) => id === kind && url === null)

function usualVariable(kind: string): string | null {
  const own =
    builtIn.find(({ id }) => id === kind)?.key ?? presets.find(({ id, url }) => id === kind && url !== null)?.key
  return own ?? null
}

/** Returns the catalog model that a deployment serves: named by `base_model`, by the model itself, or without a cloud's affixes. */
function findModel(catalog: Catalog, { kind, model, model_info: info }: Deployment, id: string): Model | null {
  const bare = model
    .replace(/^(?:[a-z]{2}\.)?(?:anthropic|google|openai|meta)[./]/, '')
    .replace(/(?:[-@]\d{8})?(?:-v\d+)?(?::\d+)?$/, '')
  const names = [info?.base_model?.split('/').at(-1), model, bare].filter(name => name !== undefined)
  for (const name of names) {
    const found =
      catalog.resolve(`${id}/${name}`) ?? (clouds.some(type => type === kind) ? catalog.resolve(name) : null)
    if (found !== null) return found
  }
  return null
}

/** Returns a deployment as a model of its own; null = its prices are not known. */
function configuredModel(
  { model, model_name, model_info: info, litellm_params: at }: Deployment,
  preset: Preset | undefined,
): ConfiguredModel | null {
  const named = model_name === model ? {} : { aliases: [model_name] }
  const published = preset?.models.find(({ id }) => id === model)
  if (published !== undefined) return model_name === model ? published : { ...published, ...named }
  const input = info?.input_cost_per_token ?? at.input_cost_per_token
  const output = info?.output_cost_per_token ?? at.output_cost_per_token
  if (input === undefined || output === undefined) return null
  const perMillion = (price: number) => Number((price * 1e6).toPrecision(12))
  return {
    id: model,
    ...named,
    pricing: { input_per_mtok: perMillion(input), output_per_mtok: perMillion(output) },
    ...(info?.max_input_tokens !== undefined && { context_window: info.max_input_tokens }),
    ...(info?.max_output_tokens !== undefined && { max_output_tokens: info.max_output_tokens }),
  }
}

type Key = { readonly variable: string; readonly rpm?: number; readonly tpm?: number }

/** Returns the keys of deployments, each once, with the highest figures that one of them states. */
function getPool(group: readonly Deployment[]): readonly Key[] {
  const byVariable = Map.groupBy(group, ({ variable }) => variable)
  return [...byVariable].flatMap(([variable, rows]) => {
    if (variable === null) return []
    const most = (figures: readonly (number | undefined)[]) => Math.max(0, ...figures.map(figure => figure ?? 0))
    const [rpm, tpm] = [most(rows.map(row => row.litellm_params.rpm)), most(rows.map(row => row.litellm_params.tpm))]
    return [{ variable, ...(rpm > 0 && { rpm }), ...(tpm > 0 && { tpm }) }]
  })
}

/** Returns the key fields of a provider. `usual` is the variable that needs no line in the file. */
function keysIn(keys: readonly Key[], usual: string | null): Pick<Provider, 'keys' | 'api_key_env'> {
  const [only] = keys
  if (only === undefined) return {}
  const isOne = keys.length === 1 && only.rpm === undefined && only.tpm === undefined
  if (isOne && only.variable === usual) return {}
  if (isOne && usual === null) return { api_key_env: only.variable }
  return {
    keys: keys.map(({ variable, ...figures }, at) => ({ name: `key-${at + 1}`, api_key_env: variable, ...figures })),
  }
}

function addAlias(
  models: ConfigFile['models'],
  of: Pick<ConfigFile['models'][number], 'provider' | 'id'>,
  alias: string,
): void {
  const known = models.find(({ provider, id }) => provider === of.provider && id === of.id)
  if (known === undefined) models.push({ ...of, aliases: [alias] })
  else if (known.aliases?.includes(alias) !== true) known.aliases?.push(alias)
}

function freeName(kind: string, providers: readonly Provider[]): string {
  const name =
    kind
      .toLowerCase()
      .replace(/[^a-z0-9]+/g, '-')
      .replace(/^[^a-z]+/, '')
      .slice(0, 24) || 'provider'
  const taken = (id: string) => providers.some(other => other.id === id) || builtIn.some(other => other.id === id)
  if (!taken(name)) return name
  for (let number = 2; ; number++) if (!taken(`${name}-${number}`)) return `${name}-${number}`
}

/** Returns a line for each setting that the file does not take over. */
function getOtherSettings(config: object): readonly string[] {
  return Object.entries(config).flatMap(([section, value]) => {
    if (section === 'model_list') return []
    const whole = counterparts[section]
    if (whole !== undefined || value === null || typeof value !== 'object' || Array.isArray(value))
      return [`${section}: ${whole ?? 'no counterpart'}`]
    return Object.keys(value).map(
      field => `${section}.${field}: ${counterparts[`${section}.${field}`] ?? 'no counterpart'}`,
    )
  })
}

const importLitellm = command({
  name: 'import litellm',
  about: 'Print the configuration file for a config.yaml of LiteLLM, and what has no counterpart',
  operands: { file: 'FILE' },
  options: {},
  async run({ operands }) {
    const { publishedModels } = readConfig()
    const { file, variables, notes } = fromLitellm(
      readYaml(operands.file),
      buildCatalog([...publishedModels, ...publishedEmbeddingModels]),
    )
    print(JSON.stringify({ $schema: './gateway.schema.json', ...file }, null, 2))
    const lines = [
      ...(variables.length > 0 ? ['Variables that the gateway needs:', ...variables.map(name => `  ${name}`)] : []),
      ...(notes.length > 0 ? ['Not in the file:', ...notes.map(note => `  ${note}`)] : []),
    ]
    process.stderr.write(lines.map(line => `${line}\n`).join(''))
  },
})

function readYaml(path: string): unknown {
  try {
    return Bun.YAML.parse(readFileSync(path, 'utf8'))
  } catch (cause) {
    // The parser's message may quote the file, which can contain keys.
    const why = cause instanceof SyntaxError ? 'it is not valid YAML' : systemErrorText(cause)
    throw new CommandFailure(`Cannot read ${path}: ${why}.`)
  }
}

export const importCommands = [importLitellm]
