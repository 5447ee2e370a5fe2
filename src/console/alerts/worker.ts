import { type Repeating, type RepeatTimer, startRepeating } from '../../core/jobs/repeating.ts'
import type { Plans } from '../../core/limits/plans.ts'
import { type Catalog, fullName, getDeprecation, leavingSoon, type Model } from '../../core/models/models.ts'
import type { Clock, Log } from '../../core/ports.ts'
import { dayMs } from '../../core/text/utc-days.ts'
import type { WebhookEvent } from '../../core/webhooks/events.ts'
import type { Database } from '../../database/database.ts'
import { enqueueEvent } from '../../database/repositories/audit.ts'
import type { Mailer } from '../../mail/mailer.ts'
import { evaluateNextAlert } from './store.ts'

type AlertWorkerDeps = {
  readonly database: Database
  readonly clock: Pick<Clock, 'now'>
  readonly log: Pick<Log, 'warn'>
  /** Null = no mail server. */
  readonly post: Mailer | null
  readonly plans: Plans
  readonly catalog: Pick<Catalog, 'list'>
  /** Returns the current state of each model. */
  readonly health: () => readonly ModelState[]
  readonly timer: RepeatTimer
}

const everyMs = 30_000
const maximumPerRun = 1_000

/**
 * Starts the evaluation of alerts and the reports of models to webhooks. Every gateway runs it; the database selects
 * one of them per alert and event.
 */
export function startAlertWorker({
  database,
  clock,
  log,
  post,
  plans,
  catalog,
  health,
  timer,
}: AlertWorkerDeps): Repeating {
  /** Keys of reported events: the database would only reject them again. */
  const reported = new Set<string>()
  return startRepeating(
    everyMs,
    async isClosed => {
      const budgets = new Map()
      for (let count = 0; count < maximumPerRun && !isClosed(); count++) {
        const fired = await evaluateNextAlert(database, { at: clock.now(), plans, budgets, sendsMail: post !== null })
        if (fired === 'none') break
        if (fired !== null && 'code' in fired)
          log.warn('alert_evaluation_failed', { account_id: fired.accountId, code: fired.code })
      }
      for (const event of modelEvents(catalog, health(), clock.now())) {
        if (event.key === undefined || reported.has(event.key)) continue
        await database.run(({ sql }) => sql.begin(step => enqueueEvent(step, null, event)))
        if (reported.size > 10_000) reported.clear()
        reported.add(event.key)
      }
    },
    failures => {
      if (failures % 10 === 1) log.warn('alert_evaluation_failed', { failures })
    },
    timer,
  )
}

/** The longest time between two reports of an outage of one model. */
const outageMs = 3_600_000

type ModelState = { readonly model: string; readonly state: string; readonly since: string | null }

/**
 * Returns the events about models: those that reached their last week or their deprecation date within the last day, and
 * those that are unhealthy now. Each has a key, so that several gateways and repeated calls report it once; a longer outage is
 * reported once per hour.
 */
function modelEvents(
  catalog: Pick<Catalog, 'list'>,
  health: readonly ModelState[],
  now: number,
): readonly WebhookEvent[] {
  const [today, yesterday] = [now, now - dayMs].map(at => new Date(at).toISOString())
  const deprecated = catalog.list.flatMap((model): WebhookEvent[] => {
    const state = getStage(model, today ?? '')
    if (state === 'current' || state === getStage(model, yesterday ?? '')) return []
    const name = fullName(model)
    const { deprecationDate: until = null, successor = null } = model
    return [
      {
        type: 'model.deprecated',
        key: `model.deprecated ${name} ${state}`,
        data: { model: name, state, until, successor },
      },
    ]
  })
  const unhealthy = health
    .filter(({ state }) => state === 'unhealthy')
    .map(
      ({ model, since }): WebhookEvent => ({
        type: 'model.unhealthy',
        key: `model.unhealthy ${model} ${Math.floor(now / outageMs)}`,
        data: { model, since },
      }),
    )
  return [...deprecated, ...unhealthy]
}

/** A model that is deprecated without a near date is announced by the catalog, not by the passing of time. */
function getStage(model: Model, todayIso: string): 'current' | 'deprecated' | 'retired' {
  if (getDeprecation(model, todayIso) === 'retired') return 'retired'
  return leavingSoon(model, todayIso) ? 'deprecated' : 'current'
}
