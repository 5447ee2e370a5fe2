import { may } from '../../core/roles.ts'
import { ago, percent, usd } from '../state/format.ts'
import { hrefTo } from '../state/place.ts'
import { useResource } from '../state/resource.ts'
import { user } from '../state/session.ts'
import { Notice } from './notice.tsx'

/** What an owner must know of money: chat refused, a grace period running, a soft cap nearly used. */
export function BillingNotices({ isLinked = true }: { readonly isLinked?: boolean }) {
  const role = user.value?.role
  const { data: billing } = useResource('GET /api/v1/billing', {
    when: role !== undefined && may(role, 'billing.see'),
  })
  if (billing === undefined) return null
  const link = isLinked && (
    <a class="button small" href={hrefTo('billing')}>
      To billing
    </a>
  )
  const { payment_required, grace_ends_at, unpaid_since, soft_cap } = billing
  return (
    <>
      {payment_required && (
        <Notice tone="bad" title="Chat is refused until payment is settled" actions={link}>
          {unpaid_since === null
            ? 'The hour of grace without a payment method is over. Add one and requests are answered again at once.'
            : 'An invoice is unpaid. Add a payment method that works; it is collected again then.'}
        </Notice>
      )}
      {!payment_required && grace_ends_at !== null && (
        <Notice tone="warn" title="No payment method" actions={link}>
          Requests are answered until{' '}
          {new Date(grace_ends_at).toLocaleTimeString('en', { timeStyle: 'short', hourCycle: 'h23' })} (
          {ago(grace_ends_at)}). Add a payment method before.
        </Notice>
      )}
      {soft_cap !== null && soft_cap.used_share >= 0.8 && (
        <Notice tone="warn" title={`${percent(soft_cap.used_share)} of this month’s soft cap is used`} actions={link}>
          {usd(soft_cap.used_usd)} of {usd(soft_cap.monthly_usd)}. Nothing is refused; automatic routing leans to
          cheaper models.
        </Notice>
      )}
    </>
  )
}
