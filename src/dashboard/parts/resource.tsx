/**
 * One page for everything that an account manages: load, table, form to create and change, confirmation, toast. Columns
 * and actions are rows of data, and their types come from the schemas of the routes.
 */
import type { ComponentChildren } from 'preact'
import { useRef, useState } from 'preact/hooks'
import { hrefTo } from '../state/href.ts'
import { type Resource, useAction } from '../state/resource.ts'
import { Button } from './controls.tsx'
import { Dialog, ResultDialog, type ShownResult } from './dialog.tsx'
import { type Field, FormFailure, FormFields, Submit, submitForm, useForm, type Values } from './form.tsx'
import { Empty, FailureNotice, Loaded } from './notice.tsx'
import { Card, Page, type PageProps, showToast } from './page.tsx'
import { type Column, Table } from './table.tsx'

type ActionDialog = {
  readonly title: string
  /** Text of the button that performs the action. */
  readonly submit: string
  readonly about?: ComponentChildren
  readonly fields?: readonly Field[]
  /** False = beside its required fields, something is missing. */
  readonly isReady?: boolean
}

/** What a button does to a row, as a row of data. Methods, so that each can have values of its own. */
export type RowAction<Row, V extends Values = Values> = {
  text(row: Row): string
  /** Accessible name among the buttons of other rows. */
  label?(row: Row): string
  isFor?(row: Row): boolean
  /** False = the button is shown, and disabled. */
  isReady?(row: Row): boolean
  readonly isDangerous?: boolean
  /** Loads what the dialog says beside its own text. */
  load?(row: Row): Promise<ComponentChildren>
  /** The confirmation or form; absent or null = performed at once. */
  dialog?(row: Row, values: V): ActionDialog | null
  /** The texts of the form at first. */
  start?(row: Row): V
  /** Returns the text of the toast, or a result to show; null = neither. */
  perform(row: Row, values: V): Promise<string | ShownResult | null>
}

/** Derives the names of the values of an action from its own `start`. */
export const action = <Row, V extends Values = Values>(given: RowAction<Row, V>): RowAction<Row> => given

type Removal<Row> = Pick<RowAction<Row>, 'isFor' | 'load'> & {
  readonly verb: string
  /** Ends the label of the button and the title of the confirmation, such as a name. */
  readonly name: (row: Row) => string
  /** What it ends. */
  readonly about: (row: Row) => ComponentChildren
  readonly remove: (row: Row) => Promise<unknown>
  /** The text of the toast. */
  readonly done: (row: Row) => string
}

/** An action that ends something, after a confirmation. */
export const removal = <Row,>({ verb, name, about, remove, done, ...others }: Removal<Row>): RowAction<Row> => ({
  ...others,
  text: () => verb,
  label: row => `${verb} ${name(row)}`,
  isDangerous: true,
  dialog: row => ({ title: `${verb} ${name(row)}?`, submit: verb, about: <p>{about(row)}</p> }),
  async perform(row) {
    await remove(row)
    return done(row)
  },
})

/** Buttons of actions on rows, with the open dialog of one of them. `onDone` is called after each. */
export function useActions<Row>(onDone: () => void) {
  const [open, setOpen] = useState<Opened<Row> | null>(null)
  const [result, setResult] = useState<ShownResult | null>(null)
  // By text: an open dialog shows data that loaded after the click on its button.
  const latest = useRef(new Map<string, RowAction<Row>>())
  const perform = async (action: RowAction<Row>, row: Row, values: Values) => {
    const outcome = await action.perform(row, values)
    setOpen(null)
    if (typeof outcome === 'string') showToast(outcome)
    else setResult(outcome)
    onDone()
  }
  const pressing = useAction(async (action: RowAction<Row>, row: Row) => {
    if (!action.dialog?.(row, action.start?.(row) ?? {})) return perform(action, row, {})
    setOpen({ current: () => latest.current.get(action.text(row)) ?? action, row, loaded: await action.load?.(row) })
  })
  return {
    buttons: (row: Row, actions: readonly RowAction<Row>[], look: string) => {
      const shown = actions.filter(({ isFor }) => isFor?.(row) ?? true)
      for (const action of shown) latest.current.set(action.text(row), action)
      return shown.map(action => (
        <Button
          key={action.text(row)}
          text={action.text(row)}
          look={action.isDangerous === true ? `${look} danger-text` : look}
          aria-label={action.label?.(row)}
          disabled={action.isReady?.(row) === false}
          onClick={() => void pressing.run(action, row)}
        />
      ))
    },
    failure: pressing.failure !== null && <FailureNotice failure={pressing.failure} />,
    dialogs: (
      <>
        {open !== null && <OpenDialog {...open} perform={perform} onClose={() => setOpen(null)} />}
        {result !== null && <ResultDialog {...result} onClose={() => setResult(null)} />}
      </>
    ),
  }
}

type Opened<Row> = { readonly current: () => RowAction<Row>; readonly row: Row; readonly loaded: ComponentChildren }

type OpenDialogProps<Row> = Opened<Row> & {
  readonly perform: (action: RowAction<Row>, row: Row, values: Values) => Promise<void>
  readonly onClose: () => void
}

function OpenDialog<Row>({ current, row, loaded, perform, onClose }: OpenDialogProps<Row>) {
  const action = current()
  const form = useForm(action.start?.(row) ?? {}, values => perform(action, row, values))
  const dialog = action.dialog?.(row, form.values) ?? null
  if (dialog === null) return null
  const { title, submit, about, fields = [], isReady } = dialog
  const look = action.isDangerous === true ? 'danger' : 'primary'
  return (
    <Dialog title={title} onClose={onClose}>
      <form onSubmit={event => submitForm(event, form)}>
        {about}
        {loaded}
        <FormFields form={form} fields={fields} />
        <FormFailure form={form} fields={fields} />
        <div class="actions end">
          <Button text="Cancel" onClick={onClose} />
          <Submit {...{ form, fields, isReady, look }} submit={[submit, 'Loading…']} />
        </div>
      </form>
    </Dialog>
  )
}

type ResourceProps<Data, Row> = {
  readonly resource: Resource<Data>
  /** The shown rows among the loaded data. */
  readonly rows: (data: Data) => readonly Row[]
  /** Name of the data while it loads, such as "the webhooks". */
  readonly what: string
  readonly title: string
  readonly about?: ComponentChildren
  readonly caption?: string
  readonly columns: readonly Column<Row>[]
  readonly rowKey: (row: Row) => string
  readonly rowClass?: (row: Row) => string
  readonly empty: readonly [title: string, about: ComponentChildren]
  readonly create?: RowAction<null> | false
  readonly actions?: readonly RowAction<Row>[]
  /** Controls of the card. */
  readonly controls?: ComponentChildren
  /** The page around the card, whose head then has the button that creates; absent = the card is a part of a page. */
  readonly page?: Omit<PageProps, 'children'>
  /** Controls below the table. */
  readonly foot?: ComponentChildren
  /** Further parts of the page: before the card, and after it. */
  readonly before?: ComponentChildren
  readonly children?: ComponentChildren
}

export function ResourceView<Data, Row>(props: ResourceProps<Data, Row>) {
  const { resource, rows, what, title, about, caption = title, columns, rowKey, rowClass, empty } = props
  const { create = false, actions = [], controls, foot, page, before, children } = props
  const { buttons, failure, dialogs } = useActions<Row | null>(resource.reload)
  const creation = create !== false && buttons(null, [create], page === undefined ? '' : 'primary')
  const tools: Column<Row> = {
    name: '',
    show: row => <div class="actions">{buttons(row, actions, 'small')}</div>,
  }
  const card = (
    <Card
      title={title}
      about={about}
      actions={
        <>
          {page === undefined && creation}
          {controls}
        </>
      }
    >
      {failure}
      <Loaded resource={resource} what={what}>
        {data => (
          <>
            <Table
              caption={caption}
              rows={rows(data)}
              columns={actions.length === 0 ? columns : [...columns, tools]}
              rowKey={rowKey}
              rowClass={rowClass}
              empty={empty}
            />
            {foot}
          </>
        )}
      </Loaded>
      {page === undefined && dialogs}
    </Card>
  )
  if (page === undefined) return card
  return (
    <Page {...page} actions={page.actions ?? creation}>
      {before}
      {card}
      {children}
      {dialogs}
    </Page>
  )
}

type ObjectPageProps<Data> = Omit<PageProps, 'actions' | 'children'> & {
  readonly resource: Resource<Data>
  /** Name of the object while it loads, such as "the key". */
  readonly what: string
  /** Shown if there is no such object, or the user may not see it. */
  readonly missing: readonly [title: string, about: ComponentChildren]
  /** Path and title of the page of all objects of the kind. */
  readonly all: readonly [path: string, title: string]
  /** Buttons of the head, once it is loaded. */
  readonly actions?: (data: Data) => readonly RowAction<Data>[]
  /** Further controls of the head. */
  readonly controls?: ComponentChildren
  readonly children: (data: Data) => ComponentChildren
}

/** The page of one object. Its title is constant: a page takes the focus when it changes, and the name loads later. */
export function ObjectPage<Data>(props: ObjectPageProps<Data>) {
  const { resource, what, missing, all, actions, controls, children, ...page } = props
  const { data, failure } = resource
  const { buttons, failure: failed, dialogs } = useActions<Data>(resource.reload)
  return (
    <Page
      {...page}
      actions={
        <>
          <a class="button" href={hrefTo(all[0])}>
            {all[1]}
          </a>
          {data !== undefined && actions !== undefined && buttons(data, actions(data), '')}
          {controls}
        </>
      }
    >
      {failed}
      {failure?.code === 'not_found' && data === undefined ? (
        <div class="card">
          <Empty title={missing[0]}>{missing[1]}</Empty>
        </div>
      ) : (
        <Loaded resource={resource} what={what} lines={8}>
          {children}
        </Loaded>
      )}
      {dialogs}
    </Page>
  )
}
