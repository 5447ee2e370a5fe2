import type { Catalog, Model } from '../core/models/models.ts'
import { deprecationOf, fullName, leavingSoon } from '../core/models/models.ts'
import { dayMs } from '../core/text/utc-days.ts'
import type { WebhookEvent } from '../core/webhooks/events.ts'

/** The longest time between two reports of an outage of one model. */
const outageMs = 3_600_000

type ModelState = { readonly model: string; readonly state: string; readonly since: string | null }

/**
 * Returns the events about models: those that reached their last week or their deprecation date within the last day, and
 * those that are unhealthy now. Each has a key, so that several gateways and repeated calls report it once; a longer outage is
 * reported once per hour.
 */
export function modelEvents(
  catalogue: Pick<Catalog, 'list'>,
  health: readonly ModelState[],
  now: number,
): readonly WebhookEvent[] {
  const [today, yesterday] = [now, now - dayMs].map(at => new Date(at).toISOString())
  const deprecated = catalogue.list.flatMap((model): WebhookEvent[] => {
    const state = stageOf(model, today ?? '')
    if (state === 'current' || state === stageOf(model, yesterday ?? '')) return []
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
function stageOf(model: Model, todayIso: string): 'current' | 'deprecated' | 'retired' {
  if (deprecationOf(model, todayIso) === 'retired') return 'retired'
  return leavingSoon(model, todayIso) ? 'deprecated' : 'current'
}
