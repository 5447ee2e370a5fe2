import { useEffect } from 'preact/hooks'
import type { ShownBilling } from '../../console/billing/schemas.ts'
import { callApi } from '../state/api.ts'
import { formatDate, humanize } from '../state/format.ts'
import { hashRoute, replaceHashRoute } from '../state/hash-route.ts'
import { type Resource, useAction } from '../state/resource.ts'
import { Button } from './controls.tsx'
import { Empty, FailureNotice } from './notice.tsx'
import { Card, showToast } from './page.tsx'
import { removal, useActions } from './resource.tsx'

type Props = { readonly billing: ShownBilling; readonly resource: Resource<ShownBilling> }

/** Shows the payment method on a gateway with Stripe. A card is entered on Stripe's page, which leads back here. */
export function PaymentMethod({ billing, resource }: Props) {
  const { buttons, dialogs } = useActions<ShownBilling>(resource.reload)
  const { payment_method: method } = billing
  const returning = useReturn(resource)
  const adding = useAction(async () =>
    location.assign((await callApi('POST /api/v1/billing/payment-method/setup', { body: {} })).url),
  )
  const failure = adding.failure ?? returning.failure
  return (
    <Card title="Payment method">
      {method === null ? <NoMethod billing={billing} /> : <Method method={method} />}
      {failure !== null && (
        <FailureNotice
          failure={failure}
          {...(returning.failure === null ? {} : { retry: () => void returning.run() })}
        />
      )}
      <p class="hint">You enter the card on Stripe’s page. Card numbers never reach the gateway.</p>
      <div class="actions">
        <Button
          text={method === null ? 'Add payment method' : 'Replace payment method'}
          look="primary"
          disabled={adding.isBusy || returning.isBusy}
          onClick={() => void adding.run()}
        />
        {buttons(billing, [remove], '')}
      </div>
      {dialogs}
    </Card>
  )
}

/** Applies the card of the setup session that Stripe's page put into the URL, once. */
function useReturn(resource: Resource<ShownBilling>) {
  const session = hashRoute.value.query.setup_session
  const returning = useAction(async () => {
    if (session === undefined) return
    resource.set(await callApi('PUT /api/v1/billing/payment-method', { body: { setup_session: session } }))
    replaceHashRoute('billing')
    showToast('Payment method saved.')
  })
  useEffect(() => void returning.run(), [session])
  return returning
}

function NoMethod({ billing }: { readonly billing: ShownBilling }) {
  return (
    <Empty title="No payment method">
      {billing.plan === 'evaluation'
        ? 'Not needed on the Evaluation plan.'
        : billing.grace_ends_at === null
          ? 'Requests work without one.'
          : 'Requests are rejected 1 hour after the last one was removed.'}
    </Empty>
  )
}

function Method({ method }: { readonly method: NonNullable<ShownBilling['payment_method']> }) {
  return (
    <p>
      <strong>
        {method.kind === 'manual'
          ? 'Manual invoicing'
          : `${humanize(method.brand ?? 'card')} ···· ${method.last_four ?? ''}`}
      </strong>
      {method.added_at !== null && <span class="quiet"> since {formatDate(method.added_at)}</span>}
    </p>
  )
}

const remove = removal<ShownBilling>({
  verb: 'Remove',
  name: () => 'the payment method',
  isFor: ({ payment_method }) => payment_method?.kind === 'stripe',
  about: ({ plan }) =>
    `${plan === 'evaluation' ? 'The Evaluation plan needs no payment method.' : 'A 1-hour grace period starts. After it, requests are rejected with 402 until a payment method is added.'} Past usage is still invoiced.`,
  remove: () => callApi('DELETE /api/v1/billing/payment-method'),
  done: ({ plan }) => `Payment method removed.${plan === 'evaluation' ? '' : ' The 1-hour grace period has started.'}`,
})
