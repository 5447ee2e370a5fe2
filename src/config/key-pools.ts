/** `keys` and `accounts` of a provider in the configuration file. */

import { readFileSync } from 'node:fs'
import { type Static, Type } from '@sinclair/typebox'
import { maximumNameCharacters } from '../core/models/models.ts'
import { systemErrorText } from '../core/validation/operator-errors.ts'
import { strictObject } from '../core/validation/validate.ts'
import type { Quota } from '../providers/keys/rate-limits.ts'
import type { EnvironmentReader } from './environment.ts'

const name = Type.String({
  pattern: '^[A-Za-z0-9][A-Za-z0-9_.-]{0,31}$',
  description: 'a name of at most 32 letters, digits, `_`, `.` and `-`',
})
/** Per minute. */
const rate = Type.Integer({ minimum: 1, maximum: 1_000_000_000 })

/** Name of the environment variable of a key. */
export const keyVariableSchema = Type.String({
  pattern: '^[A-Z][A-Z0-9_]{0,63}$',
  description: 'the name of the environment variable that contains the key, in capitals',
})

const keySchema = strictObject({
  name,
  /** Exactly one of `api_key_env` and `api_key_file`. */
  api_key_env: Type.Optional(keyVariableSchema),
  api_key_file: Type.Optional(Type.String({ minLength: 1, maxLength: 4_096 })),
  weight: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000 })),
  rpm: Type.Optional(rate),
  tpm: Type.Optional(rate),
  models: Type.Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: maximumNameCharacters }), { minItems: 1, maxItems: 256 }),
  ),
  account: Type.Optional(name),
})

/** Accounts at the provider: keys that name one share its figures. */
const keyAccountSchema = strictObject({ name, rpm: Type.Optional(rate), tpm: Type.Optional(rate) })

export const keyPoolFields = {
  keys: Type.Optional(Type.Array(keySchema, { minItems: 1, maxItems: 64 })),
  accounts: Type.Optional(Type.Array(keyAccountSchema, { minItems: 1, maxItems: 64 })),
}

type ConfiguredKey = Static<typeof keySchema>
type ConfiguredPool = {
  readonly keys?: readonly ConfiguredKey[]
  readonly accounts?: readonly Static<typeof keyAccountSchema>[]
}

type KeySettings = {
  readonly name: string
  readonly apiKey: string
  readonly weight: number
  readonly account: string
  /** As configured; null = all models. */
  readonly models: readonly string[] | null
}

export type KeyPoolSettings = {
  readonly keys: readonly KeySettings[]
  /** Quota of each account with `rpm` or `tpm`. */
  readonly quotas: ReadonlyMap<string, Quota>
}

/**
 * Reads the keys of a provider; null = it lists none. Adds each problem to `problems` without the secrets: `place`
 * begins the line.
 */
export function readKeyPool(
  read: Pick<EnvironmentReader, 'secret'>,
  place: string,
  { keys, accounts }: ConfiguredPool,
  problems: string[],
): KeyPoolSettings | null {
  if (keys === undefined) {
    if (accounts !== undefined) problems.push(`${place} has \`accounts\` and no \`keys\`; add keys, or remove them`)
    return null
  }
  for (const twice of repeated(keys.map(key => key.name)))
    problems.push(`${place}: two keys are named "${twice}"; rename one`)
  for (const twice of repeated((accounts ?? []).map(account => account.name)))
    problems.push(`${place}: two accounts are named "${twice}"; rename one`)
  const settings = keys.flatMap((key): KeySettings[] => {
    const { name: own, weight = 1, account, models = null } = key
    if (accounts !== undefined && account !== undefined && !accounts.some(item => item.name === account))
      problems.push(`${place}: key "${own}" names the unknown account "${account}"; list it in \`accounts\``)
    const apiKey = readKey(read, `${place}: key "${own}"`, key, problems)
    return apiKey === null ? [] : [{ name: own, apiKey, weight, account: getAccount(key), models }]
  })
  return { keys: settings, quotas: readQuotas(place, keys, accounts ?? [], problems) }
}

/** A key without `account` is an account of its own. Names cannot contain `:`, so it never coincides with a named one. */
const getAccount = ({ name: own, account }: ConfiguredKey) => account ?? `:${own}`

function readKey(
  read: Pick<EnvironmentReader, 'secret'>,
  place: string,
  { api_key_env: variable, api_key_file: path }: ConfiguredKey,
  problems: string[],
): string | null {
  if ((variable === undefined) === (path === undefined)) {
    problems.push(`${place} must have either \`api_key_env\` or \`api_key_file\``)
    return null
  }
  if (path === undefined) {
    const key = read.secret(variable ?? '')
    if (key === null) problems.push(`${place} names ${variable}, which is not set`)
    return key
  }
  try {
    const key = readFileSync(path, 'utf8').trim()
    if (key !== '') return key
    problems.push(`${place}: ${path} is empty`)
  } catch (cause) {
    problems.push(`${place}: cannot read ${path}: ${systemErrorText(cause)}`)
  }
  return null
}

/** All statements about one account must agree: its own entry, and those of its keys. */
function readQuotas(
  place: string,
  keys: readonly ConfiguredKey[],
  accounts: NonNullable<ConfiguredPool['accounts']>,
  problems: string[],
): ReadonlyMap<string, Quota> {
  const stated = [
    ...accounts.map(({ name: account, rpm, tpm }) => ({ account, rpm, tpm })),
    ...keys.map(key => ({ account: getAccount(key), rpm: key.rpm, tpm: key.tpm })),
  ]
  const quotas = new Map<string, Quota>()
  for (const { account, rpm = null, tpm = null } of stated) {
    if (rpm === null && tpm === null) continue
    const { requests, tokens } = quotas.get(account) ?? { requests: null, tokens: null }
    if ((rpm !== null && requests !== null && rpm !== requests) || (tpm !== null && tokens !== null && tpm !== tokens))
      problems.push(`${place}: account "${account}" has different figures for \`rpm\` or \`tpm\`; state them once`)
    quotas.set(account, { requests: requests ?? rpm, tokens: tokens ?? tpm })
  }
  return quotas
}

function repeated(names: readonly string[]): readonly string[] {
  return [...new Set(names.filter((text, at) => names.indexOf(text) !== at))]
}
