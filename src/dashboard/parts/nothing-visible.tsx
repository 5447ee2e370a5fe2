import { isAllowed } from '../../core/accounts/roles.ts'
import { useResource } from '../state/resource.ts'
import { user } from '../state/session.ts'
import { Notice } from './notice.tsx'

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
