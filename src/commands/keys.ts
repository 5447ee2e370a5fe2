/** `keys …`: manages API keys. */
import { randomBytes } from 'node:crypto'
import { Value } from '@sinclair/typebox/value'
import { mintApiKey, randomBase62 } from '../core/accounts/api-keys.ts'
import type { ScopeLimits } from '../core/limits/scopes.ts'
import { modelPattern } from '../core/models/allowed-models.ts'
import { dayMs, timeIn } from '../core/text/utc-days.ts'
import type { Database } from '../database/database.ts'
import { findKey, rotateKey } from '../database/repositories/key-lineages.ts'
import { createKey, listKeys, revokeKey } from '../database/repositories/keys.ts'
import type { ApiKey } from '../database/tables.ts'
import { changedLimits, scopeLimitsSchema, shownScopeLimits } from '../http/scope-limits.ts'
import { shellCommand } from '../server/shell-command.ts'
import { CommandFailure, columns, command, json, print, printJson, UsageError } from './command.ts'
import { withAccount } from './open-database.ts'

const email = '<email>'
const maximumNameCharacters = 100

const create = command({
  name: 'keys create',
  about: 'Create an API key; prints it once',
  operands: { email },
  options: {
    name: { type: 'string', value: 'TEXT', about: 'what the key is for' },
    expires: { type: 'string', value: 'TIME', about: 'such as 90d, 12h or 2030-01-31T00:00:00Z; default: never' },
    models: { type: 'string', value: 'LIST', about: 'the models it may use: openai/gpt-5.5,anthropic/*' },
    limits: { type: 'string', value: 'LIST', about: 'its limits: requests_per_minute=60,daily_cost_usd=5' },
    json,
  },
  run({ operands, options }) {
    const name = (options.name ?? 'operator key').trim()
    if (name === '' || name.length > maximumNameCharacters)
      throw new UsageError(`--name must have 1 to ${maximumNameCharacters} characters.`)
    const now = new Date()
    const rules = {
      expiresAt: options.expires === undefined ? null : expiryIn(options.expires, now.getTime()),
      models: modelsIn(options.models),
      limits: limitsIn(options.limits, now),
    }
    const minted = mintApiKey(randomBytes)
    const own = {
      id: `key_${randomBase62(20, randomBytes)}`,
      name,
      publicId: minted.id,
      digest: minted.digest,
      createdAt: now,
      ...rules,
    }
    return withAccount(operands.email, async (database, { account, user }) => {
      if (!(await createKey(database, { ...own, accountId: account.id, userId: user.id })))
        throw new CommandFailure(`${operands.email} is a viewer and cannot have API keys. Change the role first.`)
      if (options.json)
        return printJson({
          ...keyForJson({ ...own, lastUsedAt: null, revokedAt: null }),
          models: own.models,
          limits: own.limits && shownScopeLimits(own.limits),
          key: minted.key,
        })
      print(
        ...columns([
          ['id', own.id],
          ['name', name],
          ['expires', own.expiresAt?.toISOString() ?? 'never'],
          ['models', own.models?.join(', ') ?? 'all'],
          ['limits', options.limits ?? 'those of the account'],
          ['key', `${minted.key}  (shown once)`],
        ]),
      )
    })
  },
})

const list = command({
  name: 'keys list',
  about: "List an account's keys, oldest first, including revoked ones",
  operands: { email },
  options: { json },
  run: ({ operands, options }) =>
    withAccount(operands.email, async (database, { account }) => {
      const keys = await listKeys(database, account.id)
      if (options.json) return printJson({ data: keys.map(keyForJson) })
      if (keys.length === 0)
        return print(`No keys. Create an API key:  ${shellCommand(`keys create ${operands.email}`)}`)
      print(
        ...columns([
          ['ID', 'PREFIX', 'CREATED', 'LAST USED', 'EXPIRES', 'STATE', 'NAME'],
          ...keys.map(key => [
            key.id,
            prefixOf(key),
            day(key.createdAt),
            day(key.lastUsedAt),
            day(key.expiresAt),
            stateOf(key),
            key.name,
          ]),
        ]),
      )
    }),
})

const revoke = command({
  name: 'keys revoke',
  about: 'Revoke an API key; takes effect within 1 s',
  operands: { email, key: '<key id or prefix>' },
  options: { json },
  run: ({ operands, options }) =>
    withAccount(operands.email, async (database, { account }) => {
      const key = await namedKey(database, account.id, operands)
      const at = new Date()
      const isNew = await revokeKey(database, account.id, key.id, at)
      if (options.json) printJson(keyForJson(isNew ? { ...key, revokedAt: at } : key))
      else print(isNew ? `${prefixOf(key)} was revoked.` : `${prefixOf(key)} was already revoked.`)
    }),
})

const rotate = command({
  name: 'keys rotate',
  about: 'Replace an API key by one with the same name, expiry and usage history; prints it once',
  operands: { email, key: '<key id or prefix>' },
  options: {
    overlap: {
      type: 'string',
      value: 'TIME',
      about: 'how long the old key stays valid, such as 1h; default: 0, at most 7d',
    },
    json,
  },
  run({ operands, options }) {
    const overlapMs = options.overlap === undefined ? 0 : durationIn(options.overlap)
    if (overlapMs === null || overlapMs > maximumOverlapMs)
      throw new UsageError('--overlap must be a duration of at most 7 days, such as 30m, 12h or 2d.')
    const minted = mintApiKey(randomBytes)
    const fresh = {
      id: `key_${randomBase62(20, randomBytes)}`,
      publicId: minted.id,
      digest: minted.digest,
      createdAt: new Date(),
    }
    return withAccount(operands.email, async (database, { account }) => {
      const old = await namedKey(database, account.id, operands)
      const rotated = await rotateKey(database, account.id, null, old.id, fresh, overlapMs / 1000)
      // A repeated attempt finds the key that the first one stored.
      const row = typeof rotated === 'string' ? await findKey(database, account.id, fresh.id) : rotated
      if (row === null)
        throw new CommandFailure(`${prefixOf(old)} is revoked, expired or already rotated. Create a new key instead.`)
      if (options.json) return printJson({ ...keyForJson(row), replaces: old.id, key: minted.key })
      print(
        ...columns([
          ['id', row.id],
          ['name', row.name],
          ['expires', row.expiresAt?.toISOString() ?? 'never'],
          ['old key', `${prefixOf(old)} ${overlapMs === 0 ? 'was revoked' : `stays valid for ${options.overlap}`}`],
          ['key', `${minted.key}  (shown once)`],
        ]),
      )
    })
  },
})

export const keyCommands = [create, list, revoke, rotate]

const maximumOverlapMs = 7 * dayMs

/** Returns the key that the arguments name. Throws a `CommandFailure` if the account has none such. */
async function namedKey(
  database: Database,
  accountId: string,
  given: { readonly email: string; readonly key: string },
): Promise<ApiKey> {
  const key = (await listKeys(database, accountId)).find(one => isMeant(one, given.key))
  if (key !== undefined) return key
  throw new CommandFailure(`${given.email} has no such key. See:  ${shellCommand(`keys list ${given.email}`)}`)
}

const units: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: dayMs }

/** Returns a duration such as `90d` in milliseconds; null = it is not a duration. */
function durationIn(text: string): number | null {
  const [, count, unit = ''] = /^(\d{1,6})([smhd])$/.exec(text) ?? []
  if (text === '0') return 0
  return count === undefined ? null : Number(count) * (units[unit] ?? 0)
}

/** Returns the time that a duration or an ISO 8601 time means. Throws a `UsageError` if it is not in the future. */
function expiryIn(text: string, now: number): Date {
  const duration = durationIn(text)
  const at = duration === null ? timeIn(text) : now + duration
  if (at > now) return new Date(at)
  throw new UsageError(
    '--expires must be a duration such as 90d or 12h, or a future time such as 2030-01-31T00:00:00Z.',
  )
}

const modelShape = new RegExp(modelPattern)

function modelsIn(text: string | undefined): string[] | null {
  if (text === undefined) return null
  const models = text.split(',').map(one => one.trim())
  if (!models.every(one => modelShape.test(one)))
    throw new UsageError('--models must be a list such as openai/gpt-5.5,anthropic/*.')
  return models
}

const limitNames = 'requests_per_minute, concurrent_requests, daily_tokens, daily_cost_usd, monthly_cost_usd'

/** Returns the limits of `--limits`; null = none. Throws a `UsageError`. */
export function limitsIn(text: string | undefined, now: Date): ScopeLimits | null {
  if (text === undefined) return null
  const sent = Object.fromEntries(
    text.split(',').map(pair => {
      const [name = '', value = ''] = pair.split('=').map(one => one.trim())
      return [name, value === '' ? Number.NaN : Number(value)]
    }),
  )
  if (!Value.Check(scopeLimitsSchema, sent)) throw new UsageError(`--limits must be NAME=NUMBER,… of ${limitNames}.`)
  return changedLimits(null, sent, now.getTime())
}

type Shown = Pick<ApiKey, 'id' | 'name' | 'publicId' | 'createdAt' | 'lastUsedAt' | 'revokedAt' | 'expiresAt'>

function keyForJson(key: Shown) {
  return {
    id: key.id,
    name: key.name,
    prefix: prefixOf(key),
    created_at: key.createdAt.toISOString(),
    last_used_at: key.lastUsedAt?.toISOString() ?? null,
    revoked_at: key.revokedAt?.toISOString() ?? null,
    expires_at: key.expiresAt?.toISOString() ?? null,
  }
}

/** Returns true if the text is the key's ID, its listed prefix with or without dots, or the complete (leaked) key. */
function isMeant(key: ApiKey, text: string): boolean {
  return text === key.id || text === key.publicId || text.startsWith(`gw_live_${key.publicId}`)
}

const prefixOf = (key: Pick<ApiKey, 'publicId'>) => `gw_live_${key.publicId}…`
const day = (at: Date | null) => at?.toISOString().slice(0, 16).replace('T', ' ') ?? '-'

function stateOf(key: Shown): string {
  if (key.revokedAt !== null) return 'revoked'
  return key.expiresAt !== null && key.expiresAt <= new Date() ? 'expired' : 'valid'
}
