import { Alerts } from '../parts/alerts.tsx'
import { Page } from '../parts/page.tsx'
import { hrefTo } from '../state/hash-route.ts'

/** Thresholds on spend, failed requests and latency. Webhooks are a page of their own. */
export function AlertsPage() {
  return (
    <Page
      title="Alerts"
      about={
        <>
          Messages when spend, failed requests or latency reach a threshold. <a href={hrefTo('webhooks')}>Webhooks</a>{' '}
          receive them as events.
        </>
      }
    >
      <Alerts />
    </Page>
  )
}
