import type { ShownKey } from '../../console/keys/schemas.ts'
import type { ShownProject } from '../../console/projects/schemas.ts'
import { outranks, projectRoles } from '../../core/accounts/roles.ts'
import { formatConstraints } from '../../core/policy/constraints-text.ts'
import { FilterBar } from '../parts/filter-bar.tsx'
import { lastUsedColumn, nameColumn } from '../parts/key-actions.tsx'
import { BurnDown, UsedLimits } from '../parts/meter.tsx'
import { Notice } from '../parts/notice.tsx'
import { Card } from '../parts/page.tsx'
import { action, ObjectPage, ResourceView, removal } from '../parts/resource.tsx'
import { memberColumns, projectRoleWords, roleChoices } from '../parts/roles.tsx'
import { UsageChart } from '../parts/usage.tsx'
import { callApi } from '../state/api.ts'
import { hrefToLog } from '../state/filters.ts'
import { exactTime } from '../state/format.ts'
import { hashRoute } from '../state/hash-route.ts'
import { hrefTo } from '../state/href.ts'
import { isKeyValid } from '../state/keys.ts'
import { type Resource, useResource } from '../state/resource.ts'
import { may } from '../state/session.ts'
import { Alerts } from './alerts.tsx'
import { saveProject } from './projects.tsx'

type Member = ShownProject['members'][number]

const archive = removal<ShownProject>({
  verb: 'Archive',
  name: ({ name }) => `project “${name}”`,
  about: () => 'Its limits end, and it accepts no keys. Revoke its valid keys first. This cannot be undone.',
  remove: ({ id }) => callApi('DELETE /api/v1/projects/:id', { params: { id } }),
  done: ({ name }) => `Project “${name}” archived`,
})

/** A project: limits with their use, members and keys. */
export function ProjectPage({ id }: { readonly id: string }) {
  const project = useResource('GET /api/v1/projects/:id', { params: { id } })
  const keys = useResource('GET /api/v1/keys', { query: { project_id: id } })
  const { range = '' } = hashRoute.value.query
  const filters = { range, project_id: id }
  const canRemove = may('projects.all') || project.data?.role === 'admin'
  const canManage = canRemove && project.data?.archived_at === null
  return (
    <ObjectPage
      title="Project"
      all={['projects', 'All projects']}
      resource={project}
      what="the project"
      missing={['No such project', 'You are not a member of it, or the ID is wrong.']}
      actions={() => (canManage ? [saveProject, ...(may('projects.all') ? [archive] : [])] : [])}
    >
      {found => (
        <>
          <Limits project={found} />
          <FilterBar path={`projects/${id}`} filters={{ range }} isRangeOnly>
            <a href={hrefToLog(filters)}>Requests</a> <a href={hrefTo('', filters)}>Usage</a>
          </FilterBar>
          <UsageChart filters={filters} empty="Create a key in this project, or choose a longer range." />
          <Members project={found} resource={project} {...{ canManage, canRemove }} onRemove={keys.reload} />
          <Keys id={id} keys={keys} />
          {canManage && <Alerts projectId={id} />}
        </>
      )}
    </ObjectPage>
  )
}

function Limits({ project: { id, name, archived_at, limits, used, constraints } }: { readonly project: ShownProject }) {
  return (
    <>
      {archived_at !== null && (
        <Notice tone="warn" title={`Archived ${exactTime(archived_at)}`}>
          It accepts no keys and no changes. Its usage stays, and its members can be removed.
        </Notice>
      )}
      <Card
        title={name}
        about={`${limits === null ? 'No limits of its own: those' : 'Its limits apply to all its keys, beside those'} of the account and of each key.`}
      >
        {limits !== null && <UsedLimits limits={limits} used={used} />}
        {constraints !== null && <p class="hint">Constraints: {formatConstraints(constraints)}</p>}
        <BurnDown limit={limits?.monthly_cost_usd} of={{ project_id: id }} />
      </Card>
    </>
  )
}

type MembersProps = {
  readonly project: ShownProject
  readonly resource: Resource<ShownProject>
  /** False in an archived project, whose members can only be removed. */
  readonly canManage: boolean
  readonly canRemove: boolean
  readonly onRemove: () => void
}

/** Members of a project; those below the user can be changed. */
function Members({ project, resource, canManage, canRemove, onRemove }: MembersProps) {
  const { id, members } = project
  // Owners and admins of the account change every role.
  const rank = may('projects.all') ? 'owner' : (project.role ?? 'viewer')
  const team = useResource('GET /api/v1/team', { when: canManage })
  const others = team.data?.data.filter(person => !members.some(({ user_id }) => user_id === person.id)) ?? []
  const grantable = projectRoles.filter(role => outranks(rank, role))
  const setRole = (user: string, role: string) =>
    callApi('PUT /api/v1/projects/:id/members/:user', { params: { id, user }, body: { role } })
  const add = action({
    text: () => 'Add member',
    start: () => ({ user: '', role: 'member' }),
    dialog: (_: null, { role }) => ({
      title: 'Add member',
      submit: 'Add member',
      fields: [
        {
          param: 'user',
          label: 'User',
          required: true,
          hint: 'Users of the account that are not in it yet.',
          choices: [['', 'Choose a user'], ...others.map(({ id, email }) => [id, email] as const)],
        },
        { param: 'role', label: 'Role', hint: projectRoleWords(role), choices: roleChoices(grantable) },
      ],
    }),
    perform: async (_, { user, role }) => {
      await setRole(user, role)
      return 'Member added'
    },
  })
  const remove = removal<Member>({
    verb: 'Remove',
    name: ({ email }) => email,
    isFor: ({ role }) => canRemove && outranks(rank, role),
    about: () => 'Their keys in this project are revoked within 1 s.',
    remove: ({ user_id: user }) =>
      callApi('DELETE /api/v1/projects/:id/members/:user', { params: { id, user } }).then(onRemove),
    done: ({ email }) => `${email} removed`,
  })
  return (
    <ResourceView
      title="Members"
      about="Owners and admins of the account have all rights in each project."
      caption="Members of the project"
      what="the members"
      resource={resource}
      rows={({ members }) => members}
      rowKey={({ user_id }) => user_id}
      columns={memberColumns<Member>({
        id: ({ user_id }) => user_id,
        words: projectRoleWords,
        choices: ({ role }) => (canManage && outranks(rank, role) ? grantable : []),
        change: ({ user_id }, role) => setRole(user_id, role).then(resource.reload),
      })}
      empty={['No members yet', 'Members of the account appear here after you add them.']}
      create={canManage && add}
      actions={[remove]}
    />
  )
}

type KeysProps = { readonly id: string; readonly keys: Resource<{ readonly data: readonly ShownKey[] }> }

function Keys({ id, keys }: KeysProps) {
  return (
    <ResourceView
      title="Keys"
      controls={<a href={hrefTo('keys', { project_id: id })}>Manage keys</a>}
      caption="Keys of the project"
      what="keys"
      resource={keys}
      rows={({ data }) => data.filter(key => isKeyValid(key))}
      rowKey={key => key.id}
      columns={[
        nameColumn,
        lastUsedColumn,
        { figure: 'requests', by: ({ usage }) => usage.requests },
        { figure: 'cost', by: ({ usage }) => usage.cost_usd },
      ]}
      empty={['No active keys', 'Create an API key and choose this project for it.']}
    />
  )
}
