/** `keys …`: manages API keys. */
import { randomBytes } from 'node:crypto'
import { getPrefix, shownKeyFace } from '../console/keys/rules.ts'
import { findKey, rotateKey } from '../console/keys/stores/key-lineages.ts'
import { createKey, listKeys, revokeKey } from '../console/keys/stores/keys.ts'
import { allProjects } from '../console/projects/store.ts'
import { mintApiKey } from '../core/accounts/api-keys.ts'
import { dayMs } from '../core/text/utc-days.ts'
import { shellCommand } from '../core/validation/errors.ts'
import type { Database } from '../database/database.ts'
import type { ApiKey } from '../database/tables.ts'
import { shownScopeLimits } from '../http/schemas.ts'
import { CommandFailure, command, json, newId, print, printJson, printTable, UsageError } from './command.ts'
import { withAccount } from './open-database.ts'
import { durationIn, keyExpiryIn, limitsIn, meantProject, modelListIn } from './projects.ts'

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
    project: { type: 'string', value: 'NAME|ID', about: 'the project that it belongs to; default: none' },
    json,
  },
  run({ operands, options }) {
    const name = (options.name ?? 'operator key').trim()
    if (name === '' || name.length > maximumNameCharacters)
      throw new UsageError(`--name must have 1 to ${maximumNameCharacters} characters.`)
    const now = new Date()
    const rules = {
      expiresAt: options.expires === undefined ? null : keyExpiryIn(options.expires, now.getTime()),
      models: modelListIn(options.models),
      limits: limitsIn(options.limits, now),
    }
    const minted = mintApiKey(randomBytes)
    const own = {
      id: newId('key'),
      name,
      publicId: minted.id,
      digest: minted.digest,
      createdAt: now,
      ...rules,
    }
    return withAccount(operands.email, async (database, { account, user }) => {
      const project =
        options.project === undefined
          ? null
          : meantProject(await allProjects(database, account.id), options.project, operands.email)
      const projectId = project?.id ?? null
      if (!(await createKey(database, { ...own, projectId, accountId: account.id, userId: user.id })))
        throw new CommandFailure(
          project === null
            ? `${operands.email} is a viewer and cannot have API keys. Change the role first.`
            : `${operands.email} cannot have API keys in this project. Give the user the role member or admin in it first.`,
        )
      if (options.json)
        return printJson({
          ...keyForJson({ ...own, projectId, lastUsedAt: null, revokedAt: null }),
          models: own.models,
          limits: own.limits && shownScopeLimits(own.limits),
          key: minted.key,
        })
      printTable([
        ['id', own.id],
        ['name', name],
        ['expires', own.expiresAt?.toISOString() ?? 'never'],
        ['models', own.models?.join(', ') ?? 'all'],
        ['limits', options.limits ?? 'those of the account'],
        ...(project === null ? [] : [['project', project.name]]),
        ['key', `${minted.key}  (shown once)`],
      ])
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
      const [keys, projects] = [await listKeys(database, account.id), await allProjects(database, account.id)]
      if (options.json) return printJson({ data: keys.map(keyForJson) })
      if (keys.length === 0)
        return print(`No keys. Create an API key:  ${shellCommand(`keys create ${operands.email}`)}`)
      const names = new Map(projects.map(({ id, name }) => [id, name]))
      printTable([
        ['ID', 'PREFIX', 'CREATED', 'LAST USED', 'EXPIRES', 'STATE', 'PROJECT', 'NAME'],
        ...keys.map(key => [
          key.id,
          getPrefix(key),
          day(key.createdAt),
          day(key.lastUsedAt),
          day(key.expiresAt),
          getState(key),
          key.projectId === null ? '-' : (names.get(key.projectId) ?? key.projectId),
          key.name,
        ]),
      ])
    }),
})

const revoke = command({
  name: 'keys revoke',
  about: 'Revoke an API key; takes effect within 1 s',
  operands: { email, key: '<key id, prefix or name>' },
  options: { json },
  run: ({ operands, options }) =>
    withAccount(operands.email, async (database, { account }) => {
      const key = await namedKey(database, account.id, operands)
      const at = new Date()
      const isNew = await revokeKey(database, account.id, key.id, at)
      if (options.json) printJson(keyForJson(isNew ? { ...key, revokedAt: at } : key))
      else print(isNew ? `${getPrefix(key)} was revoked.` : `${getPrefix(key)} was already revoked.`)
    }),
})

const rotate = command({
  name: 'keys rotate',
  about: 'Replace an API key by one with the same name, expiry and usage history; prints it once',
  operands: { email, key: '<key id, prefix or name>' },
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
      id: newId('key'),
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
        throw new CommandFailure(`${getPrefix(old)} is revoked, expired or already rotated. Create a new key instead.`)
      if (options.json) return printJson({ ...keyForJson(row), replaces: old.id, key: minted.key })
      printTable([
        ['id', row.id],
        ['name', row.name],
        ['expires', row.expiresAt?.toISOString() ?? 'never'],
        ['old key', `${getPrefix(old)} ${overlapMs === 0 ? 'was revoked' : `stays valid for ${options.overlap}`}`],
        ['key', `${minted.key}  (shown once)`],
      ])
    })
  },
})

export const keyCommands = [create, list, revoke, rotate]

const maximumOverlapMs = 7 * dayMs

/**
 * Returns the key that the arguments name; by a name, the valid one. Throws a `CommandFailure` if the account has none such, or several.
 */
export async function namedKey(
  database: Database,
  accountId: string,
  given: { readonly email: string; readonly key: string },
): Promise<ApiKey> {
  const keys = await listKeys(database, accountId)
  const meant = keys.find(item => isMeant(item, given.key))
  if (meant !== undefined) return meant
  const named = keys.filter(({ name }) => name === given.key)
  const valid = withoutReplaced(named.filter(item => getState(item) === 'valid'))
  const [key, ...others] = valid.length > 0 ? valid : named
  if (key !== undefined && others.length === 0) return key
  if (key !== undefined)
    throw new CommandFailure(
      `${given.email} has several keys with this name: ${[key, ...others].map(getPrefix).join(', ')}. Name one by its prefix.`,
    )
  throw new CommandFailure(`${given.email} has no such key. See:  ${shellCommand(`keys list ${given.email}`)}`)
}

/** Drops keys that a rotation replaced and that stay valid for its overlap: a name means the newest key of each lineage. */
function withoutReplaced(keys: readonly ApiKey[]): readonly ApiKey[] {
  const getLine = (key: ApiKey) => key.lineId ?? key.id
  return keys.filter(key => !keys.some(other => getLine(other) === getLine(key) && other.createdAt > key.createdAt))
}

type Shown = Parameters<typeof shownKeyFace>[0] & Pick<ApiKey, 'projectId'>

const keyForJson = (key: Shown) => ({ ...shownKeyFace(key), project_id: key.projectId })

/** Returns true if the text is the key's ID, its listed prefix with or without dots, or the complete (leaked) key. */
function isMeant(key: ApiKey, text: string): boolean {
  return text === key.id || text === key.publicId || text.startsWith(`gw_live_${key.publicId}`)
}

const day = (at: Date | null) => at?.toISOString().slice(0, 16).replace('T', ' ') ?? '-'

function getState(key: Shown): string {
  if (key.revokedAt !== null) return 'revoked'
  return key.expiresAt !== null && key.expiresAt <= new Date() ? 'expired' : 'valid'
}
