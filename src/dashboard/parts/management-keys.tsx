import { managementScopes } from '../../core/accounts/roles.ts'
import { callApi } from '../state/api.ts'
import { formatDate, relativeTime } from '../state/format.ts'
import { useResource } from '../state/resource.ts'
import type { ManagementKey } from '../state/routes.ts'
import { action, ResourceView } from './resource.tsx'

const create = action({
  text: () => 'Create management key',
  start: () => ({ name: '', scopes: 'keys:read', days: '90' }),
  dialog: (_: null, { scopes }) => ({
    title: 'Create management key',
    submit: 'Create management key',
    isReady: scopes !== '',
    fields: [
      { param: 'name', label: 'Name', required: true, maxLength: 100, placeholder: 'terraform' },
      { param: 'scopes', label: 'Scopes (write includes read)', checks: managementScopes },
      {
        param: 'days',
        label: 'Expires',
        choices: ['7', '30', '90', '366'].map(days => [days, `in ${days} days`] as const),
      },
    ],
  }),
  perform: async (_, { name, scopes, days }) => {
    const body = { name, scopes: scopes.split(',').filter(scope => scope !== ''), expires_in_days: Number(days) }
    const { key } = await callApi('POST /api/v1/management-keys', { body })
    return {
      title: 'Management key created',
      about: <p>Copy it now: the gateway stores only its digest.</p>,
      once: { text: key, what: 'key' },
    }
  },
})

const revoke = action<ManagementKey>({
  text: () => 'Revoke',
  label: ({ name }) => `Revoke ${name}`,
  isDangerous: true,
  dialog: ({ name }) => ({
    title: `Revoke “${name}”?`,
    submit: 'Revoke',
    about: <p>Programs that use it get 401 within 1 s. This cannot be undone.</p>,
  }),
  perform: async ({ id, name }) => {
    await callApi('DELETE /api/v1/management-keys/:id', { params: { id } })
    return `Management key “${name}” revoked`
  },
})

/** Credentials of programs that manage the account. */
export function ManagementKeys() {
  return (
    <ResourceView
      title="Management keys"
      about="For programs that create keys, set budgets or read usage. They answer no chat."
      what="management keys"
      resource={useResource('GET /api/v1/management-keys')}
      rows={({ data }) => data}
      rowKey={({ id }) => id}
      columns={[
        { name: 'Name', isHeading: true, show: ({ name }) => name },
        { name: 'Scopes', show: ({ scopes }) => <code>{scopes.join(' ')}</code> },
        { name: 'Last used', from: 'middle', show: ({ last_used_at: at }) => relativeTime(at) },
        { name: 'Expires', from: 'middle', show: ({ expires_at: at }) => formatDate(at) },
      ]}
      empty={['No management keys', 'A script needs none for chats: they use API keys.']}
      create={create}
      actions={[revoke]}
    />
  )
}
