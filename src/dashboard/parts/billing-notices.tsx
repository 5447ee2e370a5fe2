import { isAllowed } from '../../core/accounts/roles.ts'
import { dateTime, formatUsd, percent, relativeTime } from '../state/format.ts'
import { hrefTo } from '../state/href.ts'
import { useResource } from '../state/resource.ts'
import { user } from '../state/session.ts'
import { Notice } from './notice.tsx'

/** Shows an owner blocked chat requests, a running grace period, and a soft cap that is nearly used. */
export function BillingNotices({ isLinked = true }: { readonly isLinked?: boolean }) {
  const role = user.value?.role
  const { data: billing } = useResource('GET /api/v1/billing', {
    when: role !== undefined && isAllowed(role, 'billing.see'),
  })
  if (billing === undefined) return null
  const link = isLinked && (
    <a class="button small" href={hrefTo('billing')}>
      Open billing
    </a>
  )
  const { payment_required, grace_ends_at, unpaid_since, soft_cap } = billing
  const isUnpaid = unpaid_since !== null
  return (
    <>
      {payment_required && (
        <Notice tone="bad" title="Chat requests are blocked until payment" actions={link}>
          {isUnpaid
            ? 'An invoice is unpaid. Pay it on its page, or replace the payment method: collection is retried.'
            : 'The grace period has ended. Add a payment method to restore access.'}
        </Notice>
      )}
      {!payment_required && grace_ends_at !== null && (
        <Notice tone="warn" title={isUnpaid ? 'Invoice unpaid' : 'No payment method'} actions={link}>
          Chat requests work until {dateTime(grace_ends_at)} UTC ({relativeTime(grace_ends_at)}).{' '}
          {isUnpaid
            ? 'Pay the invoice on its page, or replace the payment method: collection is retried.'
            : 'Add a payment method before then.'}
        </Notice>
      )}
      {soft_cap !== null && soft_cap.used_share >= 0.8 && (
        <Notice
          tone="warn"
          title={`${percent(soft_cap.used_share)} of the soft cap for ${soft_cap.period === 'billing_cycle' ? 'this billing cycle' : 'this calendar month'} is used`}
          actions={link}
        >
          {formatUsd(soft_cap.used_usd)} of {formatUsd(soft_cap.monthly_usd)}. Requests are never blocked; automatic
          routing prefers cheaper models.
        </Notice>
      )}
    </>
  )
}
