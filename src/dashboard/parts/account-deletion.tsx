import { callApi } from '../state/api.ts'
import { currentSession, end } from '../state/session.ts'
import { ownPassword } from './form.tsx'
import { Card } from './page.tsx'
import { action, useActions } from './resource.tsx'

const needsPassword = () => currentSession.value?.single_sign_on !== true

/** Deletes the account. The owner types its name and, without single sign-on, the password. */
const deletion = action<string, { readonly name: string; readonly password: string }>({
  text: () => 'Delete account',
  isDangerous: true,
  start: () => ({ name: '', password: '' }),
  dialog: (accountName, { name, password }) => ({
    title: 'Delete this account?',
    submit: 'Delete account',
    isReady: name === accountName && (!needsPassword() || password !== ''),
    about: (
      <p>
        All API keys stop working, all users lose access, and names, email addresses, projects, webhooks and alerts are
        erased. A running billing cycle ends now and is invoiced. Usage and invoices stay without names.
      </p>
    ),
    fields: [
      { param: 'name', label: `Type the account name: ${accountName}`, required: true },
      ...(needsPassword() ? [ownPassword] : []),
    ],
  }),
  perform: async (_, { name, password }) => {
    await callApi('DELETE /api/v1/account', { body: { name, ...(needsPassword() ? { password } : {}) } })
    end('Account deleted')
    return null
  },
})

export function AccountDeletion({ name }: { readonly name: string }) {
  const { buttons, dialogs } = useActions<string>(() => undefined)
  return (
    <Card title="Delete account" about="Ends all keys, users and settings of the account. This cannot be undone.">
      <div class="actions">{buttons(name, [deletion], '')}</div>
      {dialogs}
    </Card>
  )
}
