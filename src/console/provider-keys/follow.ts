/** Follows in every gateway process what owners change while it runs. */
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
import { inTransaction, typedRows } from '../../database/statement.ts'
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
    ({ sql }) => sql<{ version: string }[]>`
      select concat_ws(' ', sum(hashtextextended(provider_keys::text, 0)), count(*),
        (select id from accounts where is_operator),
        (select sum(hashtextextended(model_switches::text, 0)) from model_switches)) as version
      from provider_keys`,
  )
  return row?.version ?? ''
}

/** Returns all keys in a stable order. */
function readKeys(database: Database): Promise<KeyRow[]> {
  return database.run(({ sql }) =>
    typedRows(sql`
      select keys.id, account_id, project_id, provider, keys.name, secret, keys.fallback, is_operator
      from provider_keys as keys join accounts on accounts.id = account_id order by keys.created_at, keys.id`),
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
  return database.run(({ sql }) => sql<ModelSwitch[]>`select model, enabled, hosts from model_switches order by model`)
}

/** Changes a model for all accounts. A model as configured has no row. */
export function switchModel(
  database: Database,
  accountId: string,
  { model, enabled, hosts }: SwitchChange,
): Promise<ModelSwitch> {
  const ordered = hosts === undefined ? null : JSON.stringify(hosts)
  return inTransaction(database, async step => {
    const [row] = await step<ModelSwitch[]>`
        insert into model_switches as known (model, enabled, hosts)
        values (${model}, ${enabled ?? true}, nullif(${ordered}::text, 'null')::jsonb)
        on conflict (model) do update set
          enabled = case when ${enabled === undefined}::boolean then known.enabled else excluded.enabled end,
          hosts = case when ${hosts === undefined}::boolean then known.hosts else excluded.hosts end,
          updated_at = clock_timestamp()
        returning model, enabled, hosts`
    if (row === undefined) throw new Error('the database stored no row')
    if (row.enabled && row.hosts === null) await step`delete from model_switches where model = ${model}`
    const details = { model, enabled: row.enabled, hosts: row.hosts === null ? null : formatHostChoices(row.hosts) }
    await recordAudit(step, database, { accountId, action: 'model.switched', details })
    return row
  })
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
