import { evaluateNextAlert } from '../console/alerts/store.ts'
import { type RepeatTimer, startRepeating } from '../core/jobs/repeating.ts'
import type { Clock, Log } from '../core/ports.ts'
import type { WebhookEvent } from '../core/webhooks/events.ts'
import type { Database } from '../database/database.ts'
import { enqueueEvent } from '../database/repositories/audit.ts'
import type { Mailer } from '../mail/mailer.ts'

type Parts = {
  readonly database: Database
  readonly clock: Clock
  readonly log: Log
  readonly post: Pick<Mailer, 'alert'> | null
  /** Events about models that hold now, each with a key. */
  readonly modelEvents: () => readonly WebhookEvent[]
  readonly timer: RepeatTimer
}

const everyMs = 30_000
const maximumPerRun = 1_000

/**
 * Starts the evaluation of alerts and the reports of models to webhooks. Every gateway runs it; the database selects
 * one of them per alert and event. `undo` receives the function that ends it.
 */
export function openAlerts({ database, clock, log, post, modelEvents, timer }: Parts, undo: (() => unknown)[]) {
  /** Keys of reported events: the database would only reject them again. */
  const reported = new Set<string>()
  const worker = startRepeating(
    everyMs,
    async isClosed => {
      for (let count = 0; count < maximumPerRun && !isClosed(); count++) {
        const fired = await evaluateNextAlert(database, clock.now())
        if (fired === 'none') break
        if (fired !== null) for (const to of fired.recipients) post?.alert(to, fired)
      }
      for (const event of modelEvents()) {
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
  undo.push(() => worker.close())
  return worker
}
