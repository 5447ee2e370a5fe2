/** Switches of models, for all accounts: stored by owners of the operator's account, followed by every process. */
import { asc, eq, sql } from 'drizzle-orm'
import { fullName, type Model } from '../../core/models/models.ts'
import { findHostsObstacle, formatHostChoices, type HostChoice, type ModelSwitch } from '../../core/models/switches.ts'
import type { Database } from '../../database/database.ts'
import { recordAudit } from '../../database/repositories/audit.ts'
import { modelSwitches } from '../../database/tables.ts'

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
