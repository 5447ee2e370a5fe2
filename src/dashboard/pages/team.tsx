import type { ShownInvitation } from '../../console/auth/schemas.ts'
import { outranks, projectRoles, roles } from '../../core/accounts/roles.ts'
import type { ShownUser } from '../../http/schemas.ts'
import type { ShownResult } from '../parts/dialog.tsx'
import { useProjects } from '../parts/project-field.tsx'
import { action, ResourceView, removal } from '../parts/resource.tsx'
import { memberColumns, projectRoleWords, roleChoices, roleWords } from '../parts/roles.tsx'
import { callApi } from '../state/api.ts'
import { formatDate, humanize, relativeTime } from '../state/format.ts'
import { hrefTo } from '../state/href.ts'
import { useResource } from '../state/resource.ts'
import type { CreatedInvitation } from '../state/routes.ts'
import { may, user } from '../state/session.ts'

type Names = ReadonlyMap<string, string>
type InProject = Pick<ShownInvitation, 'project_id' | 'project_role'>

/** `Search (Admin)`; empty without a project. */
function projectText({ project_id, project_role }: InProject, names: Names): string {
  if (project_id === null) return ''
  const name = names.get(project_id) ?? project_id
  return project_role === null ? name : `${name} (${humanize(project_role)})`
}

/** `member with the role viewer in the project Search`: everything that the link grants. */
function grantText({ role, project_id, project_role }: CreatedInvitation, names: Names): string {
  if (project_id === null) return role
  return `${role} with the role ${project_role ?? 'member'} in the project ${names.get(project_id) ?? project_id}`
}

/** Without email the inviter shares the link, which is shown once. */
function toResult(created: CreatedInvitation, names: Names): ShownResult {
  const { token, email, expires_at } = created
  if (token === undefined)
    return {
      title: 'Invitation sent',
      about: (
        <p>
          {email} receives an email with a link to join as {grantText(created, names)}. It works once and expires on{' '}
          {formatDate(expires_at)}.
        </p>
      ),
    }
  return {
    title: 'Share this link',
    about: (
      <p>
        Share this link with {email} only. It grants the role {grantText(created, names)}, works once, and expires on{' '}
        {formatDate(expires_at)}. It is not shown again.
      </p>
    ),
    once: { text: `${location.origin}/${hrefTo(`invitation/${token}`)}`, what: 'link' },
  }
}

const remove = removal<ShownUser>({
  verb: 'Remove',
  name: ({ email }) => email,
  isFor: ({ id, role }) => may('team.remove') && id !== user.value?.id && outranks(user.value?.role ?? 'member', role),
  about: () => 'Their keys and sessions are revoked within 1 s. Their usage stays in the log.',
  remove: ({ id }) => callApi('DELETE /api/v1/team/:id', { params: { id } }),
  done: ({ email }) => `${email} removed`,
})

const withdraw = removal<ShownInvitation>({
  verb: 'Withdraw',
  name: ({ email }) => `the invitation of ${email}`,
  about: () => 'The link stops working.',
  remove: ({ id }) => callApi('DELETE /api/v1/team/invitations/:id', { params: { id } }),
  done: ({ email }) => `Invitation of ${email} withdrawn`,
})

export function Team() {
  const team = useResource('GET /api/v1/team')
  const { names } = useProjects()
  const invite = action({
    text: () => 'Invite user',
    start: () => ({ email: '', role: 'member', project_id: '', project_role: 'member' }),
    dialog: (_: null, { role, project_id, project_role }) => ({
      title: 'Invite user',
      submit: 'Invite',
      fields: [
        { param: 'email', label: 'Email', type: 'email', required: true },
        {
          param: 'role',
          label: 'Role',
          hint: roleWords(role),
          choices: roleChoices(['viewer', 'member', ...(user.value?.role === 'owner' ? ['admin'] : [])]),
        },
        {
          param: 'project_id',
          label: 'Project',
          hint: 'A viewer with a project sees only that project.',
          choices: 'projects',
        },
        ...(project_id === ''
          ? []
          : [
              {
                param: 'project_role',
                label: 'Role in the project',
                hint: projectRoleWords(project_role),
                choices: roleChoices(projectRoles),
              } as const,
            ]),
      ],
    }),
    perform: async (_, { email, role, project_id, project_role }) => {
      const joined = project_id === '' ? {} : { project_id, project_role }
      return toResult(await callApi('POST /api/v1/team/invitations', { body: { email, role, ...joined } }), names)
    },
  })
  return (
    <ResourceView
      page={{ title: 'Team', hint: 'All members share this account’s limits and billing.' }}
      title="Members"
      caption="Members of the account"
      what="the team"
      resource={team}
      rows={({ data }) => data}
      rowKey={({ id }) => id}
      columns={[
        ...memberColumns<ShownUser>({
          id: ({ id }) => id,
          words: roleWords,
          choices: () => (may('team.change_roles') ? roles : []),
          change: ({ id }, role) =>
            callApi('PATCH /api/v1/team/:id', { params: { id }, body: { role } }).then(team.reload),
        }),
        { name: 'Joined', from: 'middle', show: ({ created_at }) => formatDate(created_at) },
      ]}
      empty={['No members', 'Members appear here when they accept an invitation.']}
      create={may('team.invite') && invite}
      actions={[remove]}
    >
      {may('team.invite') && (team.data?.invitations.length ?? 0) > 0 && (
        <ResourceView
          title="Pending invitations"
          about="Links expire after 7 days. A new invitation replaces the old link."
          what="the invitations"
          resource={team}
          rows={({ invitations }) => invitations}
          rowKey={({ id }) => id}
          columns={[
            { name: 'Email', isHeading: true, show: ({ email }) => email },
            { name: 'Role', show: ({ role }) => humanize(role) },
            { name: 'Project', from: 'middle', show: invitation => projectText(invitation, names) },
            { name: 'Expires', from: 'middle', show: ({ expires_at }) => relativeTime(expires_at) },
          ]}
          empty={['No invitations', 'Invitations appear here until they are accepted.']}
          actions={[withdraw]}
        />
      )}
    </ResourceView>
  )
}
