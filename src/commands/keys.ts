/** `keys …`: manages API keys. */
import { randomBytes } from 'node:crypto'
import { mintApiKey, randomBase62 } from '../core/accounts/api-keys.ts'
import { Value } from '@sinclair/typebox/value'
import type { ScopeLimits } from '../core/limits/scopes.ts'
import { modelPattern } from '../core/models/allowed-models.ts'
import { timeIn } from '../core/text/utc-days.ts'
import { changedLimits, scopeLimitsSchema } from '../http/scope-limits.ts'
import { createKey, listKeys, revokeKey } from '../database/repositories/keys.ts'
import type { ApiKey } from '../database/tables.ts'
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
    expires: { type: 'string', value: 'TIME', about: 'when it expires: a time in ISO 8601' },
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
      expiresAt: expiryIn(options.expires, now),
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
      await createKey(database, { ...own, accountId: account.id, userId: user.id })
      if (options.json)
        return printJson({
          ...keyForJson({ ...own, lastUsedAt: null, revokedAt: null }),
          key: minted.key,
        })
      print(
        ...columns([
          ['id', own.id],
          ['name', name],
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
          ['ID', 'PREFIX', 'CREATED', 'LAST USED', 'STATE', 'NAME'],
          ...keys.map(key => [key.id, prefixOf(key), day(key.createdAt), day(key.lastUsedAt), stateOf(key), key.name]),
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
      const key = (await listKeys(database, account.id)).find(one => isMeant(one, operands.key))
      if (key === undefined)
        throw new CommandFailure(
          `${operands.email} has no such key. See:  ${shellCommand(`keys list ${operands.email}`)}`,
        )
      const at = new Date()
      const isNew = await revokeKey(database, account.id, key.id, at)
      if (options.json) printJson(keyForJson(isNew ? { ...key, revokedAt: at } : key))
      else print(isNew ? `${prefixOf(key)} was revoked.` : `${prefixOf(key)} was already revoked.`)
    }),
})

export const keyCommands = [create, list, revoke]

function expiryIn(text: string | undefined, now: Date): Date | null {
  if (text === undefined) return null
  const time = timeIn(text)
  if (!(time > now.getTime())) throw new UsageError('--expires must be a future time, such as 2099-01-31T00:00:00Z.')
  return new Date(time)
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

function limitsIn(text: string | undefined, now: Date): ScopeLimits | null {
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
