import { useState } from 'preact/hooks'
import { useAction } from '../state/action.ts'
import { callApi } from '../state/api.ts'
import { currentSession, end } from '../state/session.ts'
import { Button } from './button.tsx'
import { FormDialog } from './dialog.tsx'
import { TextField } from './field.tsx'
import { Card } from './page.tsx'

/** Deletes the account. The owner types its name and, without single sign-on, the password. */
export function AccountDeletion({ name }: { readonly name: string }) {
  const [isOpen, setOpen] = useState(false)
  return (
    <Card title="Delete account" about="Ends all keys, users and settings of the account. This cannot be undone.">
      <div class="actions">
        <Button text="Delete account" look="danger-text" onClick={() => setOpen(true)} />
      </div>
      {isOpen && <Deletion name={name} onClose={() => setOpen(false)} />}
    </Card>
  )
}

function Deletion({ name, onClose }: { readonly name: string; readonly onClose: () => void }) {
  const [typed, setTyped] = useState('')
  const [password, setPassword] = useState('')
  const needsPassword = currentSession.value?.single_sign_on !== true
  const deleting = useAction(async () => {
    const body = { name: typed, ...(needsPassword ? { password } : {}) }
    await callApi('DELETE /api/v1/account', { body })
    end('Account deleted')
  })
  return (
    <FormDialog
      title="Delete this account?"
      action="Delete account"
      isDangerous
      isReady={typed === name && (!needsPassword || password !== '')}
      doing={deleting}
      fields={['name']}
      onClose={onClose}
    >
      <p>
        All API keys stop working, all users lose access, and names, email addresses, projects, webhooks and alerts are
        erased. A running billing cycle ends now and is invoiced. Usage and invoices stay without names.
      </p>
      <TextField
        label={`Type the account name: ${name}`}
        required
        value={typed}
        onText={setTyped}
        param="name"
        failure={deleting.failure}
      />
      {needsPassword && (
        <TextField
          label="Your password"
          type="password"
          name="password"
          autocomplete="current-password"
          required
          value={password}
          onText={setPassword}
        />
      )}
    </FormDialog>
  )
}
