import { useState } from 'preact/hooks'
import type { ShownProject } from '../../console/projects/schemas.ts'
import { formatConstraints } from '../../core/policy/constraints-text.ts'
import { Switch } from '../parts/field.tsx'
import { UsedLimits } from '../parts/meter.tsx'
import { Badge } from '../parts/notice.tsx'
import { action, ResourceView } from '../parts/resource.tsx'
import { callApi } from '../state/api.ts'
import { formatCount, formatDate, humanize } from '../state/format.ts'
import { hrefTo } from '../state/href.ts'
import { constraintsField, limitFields, toConstraints, toLimits, toLimitTexts } from '../state/keys.ts'
import { useResource } from '../state/resource.ts'
import { may } from '../state/session.ts'

/** Creates a project, or changes the name and, with the right to it, the limits of one. */
export const saveProject = action({
  text: (project: ShownProject | null) => (project === null ? 'Create project' : 'Change project'),
  start: project => ({
    name: project?.name ?? '',
    ...toLimitTexts(project?.limits ?? null),
    constraints: formatConstraints(project?.constraints ?? null),
  }),
  dialog: project => ({
    title: project === null ? 'Create project' : `Change “${project.name}”`,
    submit: project === null ? 'Create project' : 'Save',
    fields: [
      {
        param: 'name',
        label: 'Name',
        required: true,
        maxLength: 100,
        ...(project === null ? { hint: 'For example the team or the application that uses it.' } : {}),
      },
      ...(may('projects.all') ? limitFields : []),
      // A new project takes none.
      ...(may('projects.all') && project !== null ? [constraintsField] : []),
    ],
  }),
  perform: async (project, { name: text, constraints, ...limits }) => {
    const name = text.trim()
    const body = { name, ...(may('projects.all') ? { limits: toLimits(limits) } : {}) }
    const bound = may('projects.all') ? { constraints: toConstraints(constraints) } : {}
    if (project === null) await callApi('POST /api/v1/projects', { body })
    else await callApi('PATCH /api/v1/projects/:id', { params: { id: project.id }, body: { ...body, ...bound } })
    return project === null ? `Project “${name}” created` : 'Project changed'
  },
})

/** The projects that the user sees, with their limits and use. */
export function Projects() {
  const projects = useResource('GET /api/v1/projects', { everyMs: 10_000 })
  const [showsArchived, setShowsArchived] = useState(false)
  const canCreate = may('projects.all')
  return (
    <ResourceView
      page={{ title: 'Projects', hint: 'A project has keys, limits and members of its own.' }}
      title={canCreate ? 'All projects' : 'Your projects'}
      caption="Projects"
      what="projects"
      controls={<Switch label="Show archived" isOn={showsArchived} onSwitch={setShowsArchived} />}
      resource={projects}
      rows={({ data }) => data.filter(({ archived_at }) => showsArchived || archived_at === null)}
      rowKey={({ id }) => id}
      rowClass={({ archived_at }) => (archived_at === null ? '' : 'faded')}
      columns={[
        {
          name: 'Name',
          isHeading: true,
          show: ({ id, name, archived_at }) => (
            <>
              <a href={hrefTo(`projects/${id}`)}>{name}</a> {archived_at !== null && <Badge>archived</Badge>}
            </>
          ),
        },
        { name: 'Limits', show: ({ limits, used }) => <UsedLimits limits={limits} used={used} /> },
        { name: 'Active keys', isNumber: true, show: ({ active_keys }) => formatCount(active_keys) },
        { name: 'Members', from: 'middle', isNumber: true, show: ({ members }) => formatCount(members.length) },
        { name: 'Your role', from: 'middle', show: ({ role }) => (role === null ? 'Owner or admin' : humanize(role)) },
        { name: 'Created', from: 'wide', show: ({ created_at }) => formatDate(created_at) },
      ]}
      empty={[
        'No projects yet',
        canCreate
          ? 'Create a project to give a team its own keys, budget and members.'
          : 'An owner or admin of the account can add you to a project.',
      ]}
      create={canCreate && saveProject}
    />
  )
}
