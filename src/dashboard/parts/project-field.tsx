/** Loads the projects of the user, and a field that selects one of them. */

import { useEffect } from 'preact/hooks'
import type { ShownKey } from '../../console/keys/schemas.ts'
import type { ShownProject } from '../../console/projects/schemas.ts'
import { isAllowed } from '../../core/accounts/roles.ts'
import { mayManage } from '../state/keys.ts'
import { useResource } from '../state/resource.ts'
import { may, user } from '../state/session.ts'
import { SelectField, type SelectProps } from './field.tsx'
import type { Column } from './table.tsx'

type ProjectChoices = {
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
  const seesAll = isAllowed(role, 'projects.all')
  return {
    open: all.filter(
      project => project.archived_at === null && (seesAll || project.role === 'member' || project.role === 'admin'),
    ),
    names: new Map(all.map(({ id, name }) => [id, name])),
    canOmit: isAllowed(role, 'keys.own'),
    mayManage: key =>
      mayManage(key, {
        userId: user.value?.id ?? '',
        role,
        projects: new Map(all.flatMap(({ id, role }) => (role === null ? [] : [[id, role]]))),
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

/** The column of the project of alerts and webhooks, if there are projects: a row without one is of all projects. */
export const projectColumn = <Row extends { readonly project_id: string | null }>(
  names: ReadonlyMap<string, string>,
): readonly Column<Row>[] =>
  names.size === 0
    ? []
    : [{ name: 'Project', show: ({ project_id: id }) => (id === null ? 'All' : (names.get(id) ?? '–')) }]

/** A project by its ID; empty = none. Not shown where the user has none to choose. */
export function ProjectField({ value, onChoice, ...shared }: Omit<SelectProps, 'choices' | 'children'>) {
  const { open, names, canOmit } = useProjects()
  const first = open[0]?.id
  useEffect(() => {
    if (!canOmit && value === '' && first !== undefined) onChoice(first)
  }, [canOmit, value, first])
  if (open.length === 0) return null
  const isListed = value === '' || open.some(({ id }) => id === value)
  return (
    <SelectField
      {...shared}
      value={value}
      onChoice={onChoice}
      choices={[
        ...(canOmit || value === '' ? [['', 'None'] as const] : []),
        ...(isListed ? [] : [[value, names.get(value) ?? value] as const]),
        ...open.map(({ id, name }) => [id, name] as const),
      ]}
    />
  )
}
