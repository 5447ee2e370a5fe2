/** Loads the projects of the user, and a field that selects one of them. */

import { useEffect } from 'preact/hooks'
import type { ShownKey } from '../../console/keys/schemas.ts'
import type { ShownProject } from '../../console/projects/schemas.ts'
import { isAllowed } from '../../core/accounts/roles.ts'
import type { RequestError } from '../state/api-error.ts'
import { mayManage } from '../state/key-rights.ts'
import { useResource } from '../state/resource.ts'
import { may, user } from '../state/session.ts'
import { SelectField } from './field.tsx'

export type ProjectChoices = {
  /** Projects that accept keys of the user. */
  readonly open: readonly ShownProject[]
  readonly names: ReadonlyMap<string, string>
  /** The user may have keys in no project. */
  readonly canOmit: boolean
  /** The user may change, rotate and revoke the key. */
  readonly mayManage: (key: Pick<ShownKey, 'user_id' | 'project_id'>) => boolean
}

export function useProjects(): ProjectChoices {
  const { data } = useResource('GET /api/v1/projects')
  const all = data?.data ?? []
  const role = user.value?.role ?? 'viewer'
  const allows = (one: ShownProject) => isAllowed(role, 'projects.all') || one.role === 'member' || one.role === 'admin'
  return {
    open: all.filter(one => one.archived_at === null && allows(one)),
    names: new Map(all.map(({ id, name }) => [id, name])),
    canOmit: isAllowed(role, 'keys.own'),
    mayManage: key =>
      mayManage(key, {
        userId: user.value?.id ?? '',
        role,
        projects: new Map(all.flatMap(one => (one.role === null ? [] : [[one.id, one.role]]))),
      }),
  }
}

/** Number of projects through which the user sees usage of others; null = the role sees all, undefined = not loaded. */
function useProjectCount(): number | null | undefined {
  const seesAll = may('usage.all')
  const { data } = useResource('GET /api/v1/projects', { when: !seesAll })
  return seesAll ? null : data?.data.length
}

/** Returns true if the user sees usage of others only through projects, and before that is known. */
export function useIsThroughProjects(): boolean {
  const count = useProjectCount()
  return count === undefined || (count !== null && count > 0)
}

/** Returns the origin of the keys, requests and usage that the user sees; null = the whole account. */
export function useOwnScope(): 'your own keys' | 'your keys and projects' | null {
  const count = useProjectCount()
  if (count === null) return null
  return count === undefined || count === 0 ? 'your own keys' : 'your keys and projects'
}

/** The project of an alert or a webhook: those without one are of all projects. */
export const nameOfProject = (names: ReadonlyMap<string, string>, id: string | null) =>
  id === null ? 'All' : (names.get(id) ?? '–')

type ProjectFieldProps = {
  readonly value: string | null
  readonly onChoice: (id: string | null) => void
  readonly failure: RequestError | null
  readonly hint?: string
}

const ofKeys = 'Its requests count in the limits of the project.'

/** The project of a key or an alert. Not shown where the user has none to choose. */
export function ProjectField({ value, onChoice, failure, hint = ofKeys }: ProjectFieldProps) {
  const { open, names, canOmit } = useProjects()
  const first = open[0]?.id
  useEffect(() => {
    if (!canOmit && value === null && first !== undefined) onChoice(first)
  }, [canOmit, value, first])
  if (open.length === 0) return null
  const isListed = value === null || open.some(({ id }) => id === value)
  return (
    <SelectField
      label="Project"
      value={value ?? ''}
      onChoice={id => onChoice(id === '' ? null : id)}
      hint={hint}
      param="project_id"
      failure={failure}
    >
      {(canOmit || value === null) && <option value="">None</option>}
      {!isListed && <option value={value}>{names.get(value) ?? value}</option>}
      {open.map(({ id, name }) => (
        <option key={id} value={id}>
          {name}
        </option>
      ))}
    </SelectField>
  )
}
