import { useState } from 'preact/hooks'
import { useAction } from '../state/action.ts'
import { callApi } from '../state/api.ts'
import { user } from '../state/session.ts'
import { Button } from './button.tsx'
import { FailureNotice, Notice } from './notice.tsx'

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
