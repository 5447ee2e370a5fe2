/**
 * The file that GATEWAY_CONFIG names. A new section is a property of the schema and a line of `readConfigFile`;
 * `config.ts` checks values against the rest of the configuration.
 */
import { readFileSync } from 'node:fs'
import { type Static, type TArray, type TObject, type TSchema, Type, TypeGuard } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { planFiguresSchema } from '../core/limits/plans.ts'
import { configuredModelSchema, modelChangeSchema } from '../core/models/configured-models.ts'
import { configuredEmbeddingModelSchema } from '../core/models/embedding-models.ts'
import { policySchema } from '../core/policy/constraints.ts'
import { operatorRulesSchema } from '../core/policy/rules.ts'
import { systemErrorText } from '../core/validation/operator-errors.ts'
import { describeExpected, strictObject } from '../core/validation/validate.ts'
import { routingSchema } from '../models/capability-levels.ts'
import { modelHostSchema } from '../models/model-hosts.ts'
import { moderationFileSchema } from '../text/moderation/layers/settings.ts'
import { cloudFields } from './clouds.ts'
import { keyPoolFields, keyVariableSchema } from './key-pools.ts'

/** Keys of a built-in provider, a provider on a cloud (`type`), or an OpenAI-compatible one, with `models`. */
const providerWith = <S extends TSchema>(models: S) =>
  strictObject({
    id: Type.String({
      pattern: '^[a-z][a-z0-9-]{0,31}$',
      description: 'a name of at most 32 lower-case letters, digits and hyphens that begins with a letter',
    }),
    /** Required, except for the built-in providers; `config/providers.ts` checks that. */
    base_url: Type.Optional(Type.String({ minLength: 8, maxLength: 2048 })),
    /** A pool of one key without figures. Without it and without `keys`, no key is sent. */
    api_key_env: Type.Optional(keyVariableSchema),
    ...keyPoolFields,
    /** Additional fields of compatible requests that this provider receives. */
    extra_fields: Type.Optional(
      Type.Array(
        Type.String({
          pattern: '^[A-Za-z][A-Za-z0-9_]{0,63}$',
          description: 'the name of a request field: at most 64 letters, digits and underscores, a letter first',
        }),
        { maxItems: 64 },
      ),
    ),
    /** Guarantees of the provider under the operator's contract. */
    policy: Type.Optional(policySchema),
    models,
    embedding_models: Type.Optional(Type.Array(configuredEmbeddingModelSchema, { maxItems: 256 })),
    /** Models of other providers that this one serves too. */
    hosts: Type.Optional(Type.Array(modelHostSchema, { minItems: 1, maxItems: 256 })),
    ...cloudFields,
  })
/** `models` is optional if there are `embedding_models` or `hosts`; `config/providers.ts` checks that. */
const providerSchema = providerWith(Type.Optional(Type.Array(configuredModelSchema, { minItems: 1, maxItems: 256 })))
/** A provider whose models are invalid: its URL and key can still be checked. */
const bareProviderSchema = providerWith(Type.Optional(Type.Array(configuredModelSchema)))

/** US dollars per search and per page. */
const webPricesSchema = strictObject({
  search_usd: Type.Optional(Type.Number({ minimum: 0, maximum: 1 })),
  fetch_usd: Type.Optional(Type.Number({ minimum: 0, maximum: 1 })),
  /** Guarantees of the search services. */
  policy: Type.Optional(policySchema),
})

/** A model that rewrites prompts instead of the enhancement rules. */
const enhancementSchema = strictObject({ model: Type.Optional(Type.String({ minLength: 1, maxLength: 256 })) })

/** The file's JSON schema, which editors read too. */
export const fileSchema = strictObject({
  providers: Type.Optional(Type.Array(providerSchema, { maxItems: 64 })),
  models: Type.Optional(Type.Array(modelChangeSchema, { maxItems: 256 })),
  plans: Type.Optional(planFiguresSchema),
  web: Type.Optional(webPricesSchema),
  safety: Type.Optional(moderationFileSchema),
  enhancement: Type.Optional(enhancementSchema),
  routing: Type.Optional(routingSchema),
  rules: Type.Optional(operatorRulesSchema),
  /** For editors only. */
  $schema: Type.Optional(Type.String({ maxLength: 2048 })),
})

/** Contents of the file, with omitted sections empty. */
export type ConfigFile = Required<Omit<Static<typeof fileSchema>, '$schema'>>

/**
 * Reads the file; null = there is none. Adds each problem to `problems` and returns the valid parts, so that one start
 * reports all problems.
 */
export function readConfigFile(path: string | null, problems: string[]): ConfigFile {
  const file = path === null ? {} : parsedFile(path, problems)
  for (const fault of getFaults(fileSchema, file, '')) problems.push(`GATEWAY_CONFIG: ${fault}`)
  const {
    providers,
    models,
    plans,
    web,
    safety: moderation,
    enhancement,
    routing,
    rules,
  } = isJsonObject(file) ? file : {}
  return {
    providers: rightItems(bareProviderSchema, Array.isArray(providers) ? providers.map(withRightModels) : []),
    models: rightItems(modelChangeSchema, models),
    plans: Value.Check(planFiguresSchema, plans) ? plans : {},
    web: Value.Check(webPricesSchema, web) ? web : {},
    safety: rightFields(moderationFileSchema, moderation),
    enhancement: Value.Check(enhancementSchema, enhancement) ? enhancement : {},
    routing: Value.Check(routingSchema, routing) ? routing : {},
    rules: rightItems(operatorRulesSchema.items, rules),
  }
}

function parsedFile(path: string, problems: string[]): unknown {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch (cause) {
    // The engine's message on invalid JSON quotes the text, which may contain secrets.
    const why = cause instanceof SyntaxError ? 'it is not valid JSON' : systemErrorText(cause)
    problems.push(`GATEWAY_CONFIG: cannot read ${path}: ${why}`)
    return {}
  }
}

function withRightModels(provider: unknown): unknown {
  if (!isJsonObject(provider)) return provider
  const { models, embedding_models: embedding } = provider
  return {
    ...provider,
    ...(models !== undefined && { models: rightItems(configuredModelSchema, models) }),
    ...(embedding !== undefined && { embedding_models: rightItems(configuredEmbeddingModelSchema, embedding) }),
  }
}

/** Returns the valid fields, and the valid items of lists; all of them are optional. */
function rightFields<S extends TObject>(schema: S, value: unknown): Partial<Static<S>> {
  if (!isJsonObject(value)) return {}
  const right: Record<string, unknown> = {}
  for (const [name, part] of Object.entries(schema.properties)) {
    const field = TypeGuard.IsArray(part) ? rightItems(part.items, value[name]) : value[name]
    if (Object.hasOwn(value, name) && Value.Check(part, field)) right[name] = field
  }
  return Value.Check(schema, right) ? right : {}
}

function rightItems<S extends TSchema>(schema: S, list: unknown): Static<S>[] {
  return Array.isArray(list) ? list.filter(item => Value.Check(schema, item)) : []
}

/**
 * Returns all problems of a value with their paths, without the values. Objects and lists are checked item by item, so
 * that one invalid field does not hide the next.
 */
export function getFaults(schema: TSchema, value: unknown, path: string): readonly string[] {
  if (Value.Check(schema, value)) return []
  if (TypeGuard.IsObject(schema) && isJsonObject(value)) {
    const { properties } = schema
    const unknown = Object.keys(value).filter(key => !Object.hasOwn(properties, key))
    const parts = Object.entries(properties).filter(
      ([key, part]) => Object.hasOwn(value, key) || !TypeGuard.IsOptional(part),
    )
    return [
      ...unknown.map(key => `${under(path, key)}: unknown key; use one of ${Object.keys(properties).join(', ')}`),
      ...parts.flatMap(([key, part]) =>
        Object.hasOwn(value, key)
          ? getFaults(part, value[key], under(path, key))
          : [`${under(path, key)}: is required: ${describeExpected(part)}`],
      ),
    ]
  }
  // An empty or too long list is reported as a whole.
  const faults = TypeGuard.IsArray(schema) && Array.isArray(value) ? itemFaults(schema, value, path) : []
  return faults.length > 0 ? faults : [`${path || 'the file'}: must be ${describeExpected(schema)}`]
}

function itemFaults(schema: TArray, items: readonly unknown[], path: string): readonly string[] {
  return items.flatMap((item, at) => getFaults(schema.items, item, under(path, String(at))))
}

const maximumKeyCharacters = 64

function under(path: string, key: string): string {
  return `${path === '' ? '' : `${path}.`}${key.slice(0, maximumKeyCharacters).replace(/\p{Cc}/gu, '')}`
}

function isJsonObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
