/** Budgets of tags: the limits of all requests with a tag, and what is used of them. */

import { useState } from 'preact/hooks'
import type { ShownTag } from '../../console/tags/schemas.ts'
import { useAction } from '../state/action.ts'
import { callApi } from '../state/api.ts'
import { compact, formatCount, formatUsd } from '../state/format.ts'
import { hrefTo } from '../state/href.ts'
import { limitParams, limitsOfTexts, textsOfLimits } from '../state/key-rule-texts.ts'
import { useResource } from '../state/resource.ts'
import { may } from '../state/session.ts'
import { Badge } from './badge.tsx'
import { Button } from './button.tsx'
import { Confirm, FormDialog } from './dialog.tsx'
import { TextField } from './field.tsx'
import { LimitFields } from './key-rules.tsx'
import { Empty, Loaded } from './notice.tsx'
import { Card } from './page.tsx'
import { Table } from './table.tsx'
import { showToast } from './toast.tsx'

type Open =
  | { readonly kind: 'set' }
  | { readonly kind: 'change'; readonly tag: ShownTag }
  | { readonly kind: 'remove'; readonly tag: ShownTag }

const everyMs = 10_000
const titleOf = ({ name, value }: Pick<ShownTag, 'name' | 'value'>) => `${name}=${value}`

/** The budgets of the account. Every role sees them; admins and owners change them. */
export function TagBudgets() {
  const tags = useResource('GET /api/v1/tags', { everyMs })
  const [open, setOpen] = useState<Open | null>(null)
  const mayChange = may('account.change')
  const close = () => setOpen(null)
  const changed = (text: string) => {
    close()
    tags.reload()
    showToast(text)
  }
  return (
    <Card
      title="Budgets"
      about="Each limits all requests of the account with the tag. Used: this UTC day and month, of the whole account."
      actions={mayChange && <Button text="Set budget" look="primary" onClick={() => setOpen({ kind: 'set' })} />}
    >
      <Loaded resource={tags} what="the budgets">
        {({ data }) =>
          data.length === 0 ? (
            <Empty title="No budgets">
              {mayChange
                ? 'Set a budget to limit the requests with a tag.'
                : 'An admin or owner of the account can set a budget for a tag.'}
            </Empty>
          ) : (
            <BudgetTable tags={data} onOpen={mayChange ? setOpen : null} />
          )
        }
      </Loaded>
      {open?.kind === 'set' && <SetBudget tag={null} onSaved={() => changed('Budget set')} onClose={close} />}
      {open?.kind === 'change' && (
        <SetBudget tag={open.tag} onSaved={() => changed('Budget changed')} onClose={close} />
      )}
      {open?.kind === 'remove' && (
        <Confirm
          title={`Remove the budget of “${titleOf(open.tag)}”?`}
          action="Remove"
          isDangerous
          perform={async () => {
            const { name, value } = open.tag
            await callApi('PUT /api/v1/tags', { body: { name, value, limits: null } })
            changed('Budget removed')
          }}
          onClose={close}
        >
          <p>Requests with this tag are then limited only by the account and their key. Their usage stays.</p>
        </Confirm>
      )}
    </Card>
  )
}

type BudgetTableProps = {
  readonly tags: readonly ShownTag[]
  /** Null = the role cannot change budgets. */
  readonly onOpen: ((open: Open) => void) | null
}

function BudgetTable({ tags, onOpen }: BudgetTableProps) {
  const count = (limit: number | null | undefined) => (limit == null ? '–' : formatCount(limit))
  return (
    <Table
      caption="Budgets"
      rows={tags}
      keyOf={titleOf}
      columns={[
        {
          name: 'Tag',
          isHeading: true,
          show: tag => (
            <a class="break" href={hrefTo('tags', { tag: titleOf(tag) })}>
              {titleOf(tag)}
            </a>
          ),
        },
        {
          name: 'Monthly cost',
          isNumber: true,
          show: ({ limits, used }) => (
            <UsedOf used={used.monthly_cost_usd} limit={limits?.monthly_cost_usd} show={formatUsd} />
          ),
        },
        {
          name: 'Daily cost',
          isNumber: true,
          show: ({ limits, used }) => (
            <UsedOf used={used.daily_cost_usd} limit={limits?.daily_cost_usd} show={formatUsd} />
          ),
        },
        {
          name: 'Daily tokens',
          isNumber: true,
          from: 'middle',
          show: ({ limits, used }) => <UsedOf used={used.daily_tokens} limit={limits?.daily_tokens} show={compact} />,
        },
        { name: 'Per minute', isNumber: true, from: 'wide', show: tag => count(tag.limits?.requests_per_minute) },
        { name: 'Concurrent', isNumber: true, from: 'wide', show: tag => count(tag.limits?.concurrent_requests) },
        ...(onOpen === null
          ? []
          : [
              {
                name: '',
                show: (tag: ShownTag) => (
                  <div class="actions">
                    <Button
                      text="Change"
                      look="small"
                      aria-label={`Change the budget of ${titleOf(tag)}`}
                      onClick={() => onOpen({ kind: 'change', tag })}
                    />
                    <Button
                      text="Remove"
                      look="small danger-text"
                      aria-label={`Remove the budget of ${titleOf(tag)}`}
                      onClick={() => onOpen({ kind: 'remove', tag })}
                    />
                  </div>
                ),
              },
            ]),
      ]}
    />
  )
}

type UsedOfProps = {
  readonly used: number
  readonly limit: number | null | undefined
  readonly show: (value: number) => string
}

/** The warning is text too, since color is not enough. */
function UsedOf({ used, limit, show }: UsedOfProps) {
  if (limit == null) return <span class="quiet">{show(used)}</span>
  return (
    <>
      {show(used)} of {show(limit)}{' '}
      {used >= limit ? <Badge tone="bad">Reached</Badge> : used >= 0.8 * limit && <Badge tone="warn">80% used</Badge>}
    </>
  )
}

type SetBudgetProps = {
  /** Null = any tag. */
  readonly tag: ShownTag | null
  readonly onSaved: () => void
  readonly onClose: () => void
}

function SetBudget({ tag, onSaved, onClose }: SetBudgetProps) {
  const [name, setName] = useState(tag?.name ?? '')
  const [value, setValue] = useState(tag?.value ?? '')
  const [texts, setTexts] = useState(textsOfLimits(tag?.limits ?? null))
  const isLimited = Object.values(texts).some(text => text !== '')
  const saving = useAction(async () => {
    const limits = limitsOfTexts(texts)
    await callApi('PUT /api/v1/tags', { body: { name: name.trim(), value: value.trim(), limits } })
    onSaved()
  })
  const { failure } = saving
  return (
    <FormDialog
      title={tag === null ? 'Set budget' : `Change the budget of “${titleOf(tag)}”`}
      action={tag === null ? 'Set budget' : 'Save'}
      isReady={name.trim() !== '' && value.trim() !== '' && isLimited}
      doing={saving}
      fields={['name', 'value', ...limitParams]}
      onClose={onClose}
    >
      {tag === null && (
        <>
          <TextField
            label="Tag name"
            required
            maxLength={32}
            placeholder="team"
            value={name}
            onText={setName}
            param="name"
            failure={failure}
          />
          <TextField
            label="Tag value"
            required
            maxLength={64}
            placeholder="search"
            hint="The budget replaces a present one of the same tag."
            value={value}
            onText={setValue}
            param="value"
            failure={failure}
          />
        </>
      )}
      <LimitFields texts={texts} onTexts={setTexts} failure={failure} />
      <p class="hint">An empty field is no limit. At least one limit is required.</p>
    </FormDialog>
  )
}
