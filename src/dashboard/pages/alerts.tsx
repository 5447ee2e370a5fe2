import { Alerts } from '../parts/alerts.tsx'
import { Page } from '../parts/page.tsx'
import { hrefTo } from '../state/href.ts'

/** Thresholds on spend, failed requests and latency. Webhooks are a page of their own. */
export function AlertsPage() {
  return (
    <Page
      title="Alerts"
      about={
        <>
          Thresholds on spend, failed requests and latency. Their receivers are on{' '}
          <a href={hrefTo('webhooks')}>Webhooks</a>.
        </>
      }
    >
      <Alerts />
    </Page>
  )
}
