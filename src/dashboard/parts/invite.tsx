/** Invitation of a user to the account and, optionally, to a project. */

import { useState } from 'preact/hooks'
import type { ShownInvitation } from '../../console/team/schemas.ts'
import { outranks, type ProjectRole, projectRoles, type Role, roles } from '../../core/accounts/roles.ts'
import { useAction } from '../state/action.ts'
import { callApi } from '../state/api.ts'
import { dateOf, humanize } from '../state/format.ts'
import { hrefTo } from '../state/href.ts'
import type { CreatedInvitation } from '../state/routes.ts'
import { Button } from './button.tsx'
import { Dialog, FormDialog, ShownOnce } from './dialog.tsx'
import { SelectField, TextField } from './field.tsx'
import { useProjects } from './project-field.tsx'
import { projectRoleWords } from './project-members.tsx'

export const roleWords: Readonly<Record<Role, string>> = {
  viewer: 'Reads what a member reads, changes nothing',
  member: 'Manages own keys and requests',
  admin: 'Manages all keys and requests, invites members',
  owner: 'Full access including billing',
}

type OfProject = Pick<ShownInvitation, 'project_id' | 'project_role'>

/** `Search (Admin)`; empty without a project. */
export function projectText({ project_id, project_role }: OfProject, names: ReadonlyMap<string, string>): string {
  if (project_id === null) return ''
  const name = names.get(project_id) ?? project_id
  return project_role === null ? name : `${name} (${humanize(project_role)})`
}

/** `member with the role viewer in the project Search`: everything that the link grants. */
function grantText(made: OfProject & Pick<ShownInvitation, 'role'>, names: ReadonlyMap<string, string>): string {
  const { role, project_id, project_role } = made
  if (project_id === null) return role
  return `${role} with the role ${project_role ?? 'member'} in the project ${names.get(project_id) ?? project_id}`
}

type InviteProps = { readonly own: Role; readonly onInvited: () => void; readonly onClose: () => void }

export function Invite({ own, onInvited, onClose }: InviteProps) {
  const [email, setEmail] = useState('')
  const [role, setRole] = useState<Role>('member')
  const [project, setProject] = useState('')
  const [projectRole, setProjectRole] = useState<ProjectRole>('member')
  const { open: projects, names } = useProjects()
  const [made, setMade] = useState<CreatedInvitation | null>(null)
  const inviting = useAction(async () => {
    const joined = project === '' ? {} : { project_id: project, project_role: projectRole }
    setMade(await callApi('POST /api/v1/team/invitations', { body: { email, role, ...joined } }))
    onInvited()
  })
  if (made !== null && made.token === undefined)
    return (
      <Dialog title="Invitation sent" onClose={onClose}>
        <p>
          {made.email} receives an email with a link to join as {grantText(made, names)}. It works once and expires on{' '}
          {dateOf(made.expires_at)}.
        </p>
        <div class="actions end">
          <Button text="Done" look="primary" onClick={onClose} />
        </div>
      </Dialog>
    )
  if (made !== null)
    return (
      <ShownOnce
        title="Share this link"
        text={`${location.origin}/${hrefTo(`invitation/${made.token}`)}`}
        what="link"
        onClose={onClose}
      >
        <p>
          Share this link with {made.email} only. It grants the role {grantText(made, names)}, works once, and expires
          on {dateOf(made.expires_at)}. It is not shown again.
        </p>
      </ShownOnce>
    )
  return (
    <FormDialog title="Invite user" action="Invite" doing={inviting} fields={['email']} onClose={onClose}>
      <TextField
        label="Email"
        type="email"
        required
        value={email}
        onText={setEmail}
        param="email"
        failure={inviting.failure}
      />
      <SelectField
        label="Role"
        value={role}
        onChoice={choice => setRole(roles.find(one => one === choice) ?? 'member')}
        hint={roleWords[role]}
      >
        <option value="viewer">Viewer</option>
        <option value="member">Member</option>
        {outranks(own, 'admin') && <option value="admin">Admin</option>}
      </SelectField>
      {projects.length > 0 && (
        <SelectField
          label="Project"
          value={project}
          onChoice={setProject}
          hint="A viewer with a project sees only that project."
        >
          <option value="">None</option>
          {projects.map(({ id, name }) => (
            <option key={id} value={id}>
              {name}
            </option>
          ))}
        </SelectField>
      )}
      {project !== '' && (
        <SelectField
          label="Role in the project"
          value={projectRole}
          onChoice={choice => setProjectRole(projectRoles.find(one => one === choice) ?? 'member')}
          hint={projectRoleWords[projectRole]}
        >
          {projectRoles.map(one => (
            <option key={one} value={one}>
              {humanize(one)}
            </option>
          ))}
        </SelectField>
      )}
    </FormDialog>
  )
}
