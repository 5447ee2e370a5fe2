/** Follows in every gateway process what owners change while it runs. */
import { asc, eq, sql } from 'drizzle-orm'
import type { StoredKey, StoredKeysSetting } from '../../config/stored-keys.ts'
import { startFollowing } from '../../core/jobs/repeating.ts'
import { fullName, type Model } from '../../core/models/models.ts'
import {
  findHostsObstacle,
  formatHostChoices,
  type HostChoice,
  type ModelSwitch,
  type SwitchesByModel,
} from '../../core/models/switches.ts'
import type { Log } from '../../core/ports.ts'
import type { Database } from '../../database/database.ts'
import { recordAudit } from '../../database/repositories/audit.ts'
import { accounts, modelSwitches, providerKeys } from '../../database/tables.ts'
import type { OwnKey } from '../../providers/keys/own-keys.ts'
import { type ProviderKeySeal, toStoredKey } from './store.ts'

export type StoredSettingsFollower = {
  /** Resolves when the settings were read once; rejects as the database does. */
  loaded(): Promise<void>
  /** Reads changes now instead of at the next poll. Never rejects. */
  look(): Promise<void>
  close(): Promise<void>
}

/** What owners change while the gateway runs. */
type StoredSettings = {
  /** Keys of the operator's account, for all accounts. */
  readonly operatorKeys: readonly StoredKey[]
  /** Own keys of accounts and projects, sealed. */
  readonly ownKeys: readonly OwnKey[]
  /** What differs from the configuration. */
  readonly switches: SwitchesByModel
}

type FollowerOptions = {
  readonly database: Database
  readonly log: Pick<Log, 'error'>
  readonly seal: Pick<ProviderKeySeal, 'open'>
  /** Whose keys serve. */
  readonly whose: StoredKeysSetting
  /** Called at the first read and after each change. */
  readonly onChange: (settings: StoredSettings) => void
}

const pollMs = 800

/** Follows what owners change: each process reads a change within a second. Unchanged rows are not read again. */
export function followStoredSettings(options: FollowerOptions): StoredSettingsFollower {
  const { database, log, seal, whose, onChange } = options
  let seen: string | null = null
  const poll = async () => {
    const version = await readVersion(database)
    if (version === seen) return
    const rows = await readKeys(database)
    const operatorKeys = whose === 'off' ? [] : rows.filter(isOperators).map(row => toStoredKey(row, seal))
    const unreadable = operatorKeys.filter(({ apiKey }) => apiKey === null)
    const names = unreadable.map(({ provider, name }) => `${provider}#${name}`).join(', ')
    if (names !== '')
      log.error('provider_keys_unreadable', {
        names,
        detail:
          'They were sealed under another secret, or their rows were changed. Restore JWT_SECRET or session-secret, or rotate the keys.',
      })
    const switches = new Map((await listModelSwitches(database)).map(row => [row.model, row]))
    // Own keys that the setting does not allow serve nothing, and a key without fallback still bars the operator's.
    onChange({ operatorKeys, ownKeys: rows.filter(row => !isOperators(row)), switches })
    seen = version
  }
  const job = startFollowing(pollMs, poll, database.onWrite)
  const done = Promise.resolve()
  return {
    loaded: () => (seen === null ? job.run() : done),
    look: () => job.run().catch(() => {}),
    close: job.close,
  }
}

type KeyRow = OwnKey & { readonly isOperator: boolean }

/** Keys of the operator's account serve all accounts, those of its projects only their own requests. */
function isOperators({ isOperator, projectId }: KeyRow): boolean {
  return isOperator && projectId === null
}

/** Returns a text that changes with any row of the settings. */
async function readVersion(database: Database): Promise<string> {
  const [row] = await database.run(
    ({ sql: run }) => run<{ version: string }[]>`
      select concat_ws(' ', sum(hashtextextended(provider_keys::text, 0)), count(*),
        (select id from accounts where is_operator),
        (select sum(hashtextextended(model_switches::text, 0)) from model_switches)) as version
      from provider_keys`,
  )
  return row?.version ?? ''
}

/** Returns all keys in a stable order. */
function readKeys(database: Database): Promise<KeyRow[]> {
  return database.run(({ orm }) =>
    orm
      .select({
        id: providerKeys.id,
        accountId: providerKeys.accountId,
        projectId: providerKeys.projectId,
        provider: providerKeys.provider,
        name: providerKeys.name,
        secret: providerKeys.secret,
        fallback: providerKeys.fallback,
        isOperator: accounts.isOperator,
      })
      .from(providerKeys)
      .innerJoin(accounts, eq(accounts.id, providerKeys.accountId))
      .orderBy(asc(providerKeys.createdAt), asc(providerKeys.id)),
  )
}

/** Switches of models, for all accounts: stored by owners of the operator's account, followed by every process. */

/** A change of a model. Absent fields stay. */
export type SwitchChange = {
  readonly model: string
  readonly enabled?: boolean | undefined
  /** Null = as configured. */
  readonly hosts?: readonly HostChoice[] | null | undefined
}

/** Returns what differs from the configuration. */
export function listModelSwitches(database: Database): Promise<ModelSwitch[]> {
  const { model, enabled, hosts } = modelSwitches
  return database.run(({ orm }) =>
    orm.select({ model, enabled, hosts }).from(modelSwitches).orderBy(asc(modelSwitches.model)),
  )
}

/** Changes a model for all accounts. A model as configured has no row. */
export function switchModel(
  database: Database,
  accountId: string,
  { model, enabled, hosts }: SwitchChange,
): Promise<ModelSwitch> {
  return database.run(({ orm }) =>
    orm.transaction(async step => {
      const change = { ...(enabled === undefined ? null : { enabled }), ...(hosts === undefined ? null : { hosts }) }
      const [row] = await step
        .insert(modelSwitches)
        .values({ model, ...change })
        .onConflictDoUpdate({ target: modelSwitches.model, set: { ...change, updatedAt: sql`clock_timestamp()` } })
        .returning()
      if (row === undefined) throw new Error('the database stored no row')
      if (row.enabled && row.hosts === null) await step.delete(modelSwitches).where(eq(modelSwitches.model, model))
      const details = {
        ...{ model, enabled: row.enabled },
        hosts: row.hosts === null ? null : formatHostChoices(row.hosts),
      }
      await recordAudit(step, database, { accountId, action: 'model.switched', details })
      return { model, enabled: row.enabled, hosts: row.hosts }
    }),
  )
}

/** Returns the IDs of a model's hosts in the configured order. */
export function getHostIds({ provider, hosts }: Pick<Model, 'provider' | 'hosts'>): readonly string[] {
  return hosts?.map(({ host }) => host) ?? [provider]
}

/** Returns what is wrong with a change, as the field and the end of a sentence; null = nothing. */
export function findSwitchProblem(
  models: readonly Pick<Model, 'id' | 'provider' | 'hosts'>[],
  { model: name, hosts = null }: SwitchChange,
): readonly [field: string, problem: string] | null {
  const model = models.find(other => fullName(other) === name)
  if (model === undefined) return ['model', 'must be the full name (provider/model) of a model of this gateway']
  const obstacle = hosts === null ? null : findHostsObstacle(hosts, getHostIds(model))
  return obstacle === null ? null : ['hosts', obstacle]
}
