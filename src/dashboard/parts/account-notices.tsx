import { useState } from 'preact/hooks'
import { isAllowed } from '../../core/accounts/roles.ts'
import { callApi } from '../state/api.ts'
import { dateTime, formatUsd, percent, relativeTime } from '../state/format.ts'
import { hrefTo } from '../state/href.ts'
import { useAction, useResource } from '../state/resource.ts'
import { user } from '../state/session.ts'
import { Button } from './controls.tsx'
import { FailureNotice, Notice } from './notice.tsx'

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

/** Asks a user to confirm the email address; until then the API rejects every change. */
export function VerificationNotice() {
  const [isSent, setSent] = useState(false)
  const sending = useAction(async () => {
    await callApi('POST /api/v1/auth/verification', { body: {} })
    setSent(true)
  })
  if (user.value?.verification_pending !== true) return null
  return (
    <>
      {sending.failure !== null && <FailureNotice failure={sending.failure} />}
      <Notice
        tone="warn"
        title="Confirm your email address"
        actions={
          <Button
            text={isSent ? 'Email sent' : 'Send another email'}
            look="small"
            disabled={sending.isBusy || isSent}
            onClick={() => void sending.run()}
          />
        }
      >
        An email to {user.value.email} contains the link. Until then you can look around, but not create keys or change
        anything.
      </Notice>
    </>
  )
}

/** Explains to a user who can create no key, has none and is in no project why usage and log are empty. */
export function NothingVisible() {
  const role = user.value?.role
  const createsKeys = role === undefined || isAllowed(role, 'keys.own')
  const keys = useResource('GET /api/v1/keys', { when: !createsKeys })
  const projects = useResource('GET /api/v1/projects', { when: !createsKeys })
  if (createsKeys || projects.data?.data.length !== 0 || keys.data?.data.length !== 0) return null
  return (
    <Notice title="You have no keys and no projects">
      As a viewer you see the requests and usage of your own keys and of your projects only. To see more, ask an owner
      or admin to add you to a project, or to change your role.
    </Notice>
  )
}
