import type { ShownModelSwitch } from '../../console/provider-keys/schemas.ts'
import { formatHostChoices, parseHostChoices } from '../../core/models/switches.ts'
import { callApi } from '../state/api.ts'
import { RequestError } from '../state/api-error.ts'
import { useResource } from '../state/resource.ts'
import { Badge } from './notice.tsx'
import { action, ResourceView } from './resource.tsx'

const turn = action<ShownModelSwitch>({
  text: ({ enabled }) => (enabled ? 'Disable' : 'Enable'),
  label: ({ enabled, model }) => `${enabled ? 'Disable' : 'Enable'} ${model}`,
  dialog: ({ model, enabled, used_by: settings }) =>
    enabled && settings.length > 0
      ? {
          title: `Disable ${model}?`,
          submit: 'Disable',
          about: <p>The configuration uses it: {settings.join(', ')}. While it is off, this does nothing.</p>,
        }
      : null,
  perform: async ({ model, enabled }) => {
    await callApi('PATCH /api/v1/model-switches', { body: { model, enabled: !enabled } })
    return enabled ? `${model} is off. Requests in progress finish.` : `${model} is on.`
  },
})

const orderHosts = action<ShownModelSwitch, { hosts: string }>({
  text: () => 'Hosts',
  label: ({ model }) => `Hosts of ${model}`,
  isFor: ({ configured_hosts: configured }) => configured.length > 1,
  start: ({ hosts, configured_hosts: configured }) => ({
    hosts: hosts === null ? configured.join(', ') : formatHostChoices(hosts),
  }),
  dialog: ({ model, configured_hosts: configured }) => ({
    title: `Hosts of ${model}`,
    submit: 'Save',
    about: (
      <p>
        Configured: {configured.join(', ')}. The configuration decides which hosts exist and their prices. An empty
        field restores its order.
      </p>
    ),
    fields: [
      {
        param: 'hosts',
        label: 'Order of calls',
        hint: 'The first host begins each request. Weights share the requests: openai:3, azure:1',
      },
    ],
  }),
  perform: async ({ model }, { hosts }) => {
    const chosen = parseHostChoices(hosts)
    const isDefault = hosts.trim() === ''
    if (chosen === null && !isDefault)
      throw new RequestError({
        ...{ status: 400, code: 'invalid_request', param: 'hosts' },
        message: 'Write hosts as “openai, azure” or “openai:3, azure:1”.',
      })
    await callApi('PATCH /api/v1/model-switches', { body: { model, hosts: isDefault ? null : chosen } })
    return `Hosts of ${model} saved. Every process uses them within 1 s.`
  },
})

/** Which models the gateway offers, and where their requests begin; absent outside the operator's account. */
export function ModelSwitches({ onChange }: { readonly onChange: () => void }) {
  const access = useResource('GET /api/v1/providers').data?.stored_keys
  const isOperator = access !== undefined && access !== 'not_operator'
  const switches = useResource('GET /api/v1/model-switches', { when: isOperator })
  if (!isOperator) return null
  const resource = {
    ...switches,
    reload() {
      switches.reload()
      onChange()
    },
  }
  return (
    <ResourceView
      title="Models on and off"
      about="A model that is off is neither listed nor called, for all accounts."
      what="models"
      resource={resource}
      rows={({ data }) => data}
      rowKey={({ model }) => model}
      columns={[
        { name: 'Model', isHeading: true, by: ({ model }) => model, show: ({ model }) => <code>{model}</code> },
        {
          name: 'State',
          by: ({ enabled }) => (enabled ? 'On' : 'Off'),
          show: ({ enabled, used_by: settings }) => (
            <>
              <Badge tone={enabled ? 'good' : 'warn'}>{enabled ? 'On' : 'Off'}</Badge>
              {settings.length > 0 && <span class="block hint">Used by {settings.join(', ')}</span>}
            </>
          ),
        },
        {
          name: 'Hosts',
          from: 'middle',
          show: ({ hosts, configured_hosts: configured }) =>
            hosts === null ? configured.join(', ') : `${formatHostChoices(hosts)} (changed here)`,
        },
      ]}
      empty={['No models', 'Add a key of a provider.']}
      actions={[turn, orderHosts]}
    />
  )
}
