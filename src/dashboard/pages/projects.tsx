import { useState } from 'preact/hooks'
import type { ShownProject } from '../../console/projects/schemas.ts'
import { Badge } from '../parts/badge.tsx'
import { Button } from '../parts/button.tsx'
import { FormDialog } from '../parts/dialog.tsx'
import { Switch, TextField } from '../parts/field.tsx'
import { LimitFields } from '../parts/key-rules.tsx'
import { Empty, Loaded } from '../parts/notice.tsx'
import { Card, Page } from '../parts/page.tsx'
import { Table } from '../parts/table.tsx'
import { showToast } from '../parts/toast.tsx'
import { UsedLimits } from '../parts/used-limits.tsx'
import { useAction } from '../state/action.ts'
import { callApi } from '../state/api.ts'
import { dateOf, formatCount, humanize } from '../state/format.ts'
import { hrefTo } from '../state/href.ts'
import { type LimitTexts, limitParams, limitsOfTexts, textsOfLimits } from '../state/key-rule-texts.ts'
import { useResource } from '../state/resource.ts'
import { may } from '../state/session.ts'

/** The projects that the user sees, with their limits and use. */
export function Projects() {
  const projects = useResource('GET /api/v1/projects', { everyMs: 10_000 })
  const [isCreating, setCreating] = useState(false)
  const [showsArchived, setShowsArchived] = useState(false)
  const canCreate = may('projects.all')
  return (
    <Page
      title="Projects"
      about="A project has keys, limits and members of its own."
      actions={canCreate && <Button text="Create project" look="primary" onClick={() => setCreating(true)} />}
    >
      <Card
        title={canCreate ? 'All projects' : 'Your projects'}
        actions={<Switch label="Show archived" isOn={showsArchived} onSwitch={setShowsArchived} />}
      >
        <Loaded resource={projects} what="projects">
          {({ data }) => (
            <ProjectTable
              projects={showsArchived ? data : data.filter(({ archived_at }) => archived_at === null)}
              canCreate={canCreate}
            />
          )}
        </Loaded>
      </Card>
      {isCreating && (
        <Create
          onMade={() => {
            setCreating(false)
            projects.reload()
          }}
          onClose={() => setCreating(false)}
        />
      )}
    </Page>
  )
}

function ProjectTable({ projects, canCreate }: { projects: readonly ShownProject[]; canCreate: boolean }) {
  if (projects.length === 0)
    return (
      <Empty title="No projects yet">
        {canCreate
          ? 'Create a project to give a team its own keys, budget and members.'
          : 'An owner or admin of the account can add you to a project.'}
      </Empty>
    )
  return (
    <Table
      caption="Projects"
      rows={projects}
      keyOf={({ id }) => id}
      classOf={({ archived_at }) => (archived_at === null ? '' : 'faded')}
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
        { name: 'Created', from: 'wide', show: ({ created_at }) => dateOf(created_at) },
      ]}
    />
  )
}

type CreateProps = { readonly onMade: () => void; readonly onClose: () => void }

function Create({ onMade, onClose }: CreateProps) {
  const [name, setName] = useState('')
  const [limits, setLimits] = useState<LimitTexts>(textsOfLimits(null))
  const making = useAction(async () => {
    await callApi('POST /api/v1/projects', { body: { name: name.trim(), limits: limitsOfTexts(limits) } })
    showToast(`Project “${name.trim()}” created`)
    onMade()
  })
  return (
    <FormDialog
      title="Create project"
      action="Create project"
      isReady={name.trim() !== ''}
      doing={making}
      fields={['name', ...limitParams]}
      onClose={onClose}
    >
      <TextField
        label="Name"
        required
        maxLength={100}
        hint="For example the team or the application that uses it."
        value={name}
        onText={setName}
        param="name"
        failure={making.failure}
      />
      <LimitFields texts={limits} onTexts={setLimits} failure={making.failure} />
    </FormDialog>
  )
}
