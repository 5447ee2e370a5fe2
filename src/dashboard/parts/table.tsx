import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { type FigureName, figures, showFigure } from '../state/figures.ts'
import { Empty } from './notice.tsx'

type Placed = {
  /** Minimum screen width for this column; absent = always shown. */
  readonly from?: 'middle' | 'wide'
}
type PlainColumn<Row> = Placed & {
  readonly name: string
  /** Explanation of the values, as a tooltip. */
  readonly about?: string
  readonly show: (row: Row) => ComponentChildren
  /** Right-aligned, so that digits line up. */
  readonly isNumber?: boolean
  readonly isHeading?: boolean
  /** Value to sort by; null goes last. Absent = the column does not sort. */
  readonly by?: (row: Row) => number | string | null
}
/** A figure, as all pages show it; `show` where the format depends on the table. */
type FigureColumn<Row> = Placed & {
  readonly figure: FigureName
  readonly by: (row: Row) => number | null
  readonly show?: (row: Row) => ComponentChildren
}
export type Column<Row> = PlainColumn<Row> | FigureColumn<Row>

function toPlain<Row>(column: Column<Row>): PlainColumn<Row> {
  if (!('figure' in column)) return column
  const { figure, by } = column
  const { label: name, about } = figures[figure]
  return { name, about, isNumber: true, show: row => showFigure(figure, by(row)), ...column }
}

type TableProps<Row> = {
  readonly caption: string
  readonly columns: readonly Column<Row>[]
  readonly rows: readonly Row[]
  readonly rowKey: (row: Row) => string
  readonly rowClass?: ((row: Row) => string) | undefined
  /** The order of the rows means something: readers cannot sort by another. */
  readonly isOrdered?: boolean
  /** Shown in place of a table without rows: what will appear, and the next step. */
  readonly empty?: readonly [title: string, about: ComponentChildren]
}

/** The numbers of a picture as a table, for readers who want them or do not see the picture. */
export function AsTable<Row>(table: TableProps<Row>) {
  return (
    <details class="as-table">
      <summary>Show as table</summary>
      <Table {...table} />
    </details>
  )
}

/** A table that scrolls horizontally within the page, also by keyboard. */
export function Table<Row>({
  caption,
  columns: given,
  rows,
  rowKey,
  rowClass,
  isOrdered = false,
  empty,
}: TableProps<Row>) {
  const [order, setOrder] = useState<Order | null>(null)
  const columns = given.map(toPlain)
  if (rows.length === 0 && empty !== undefined) return <Empty title={empty[0]}>{empty[1]}</Empty>
  const by = columns.find(({ name }) => name === order?.name)?.by
  const shown = by === undefined || order === null ? rows : sorted(rows, by, order.isDescending)
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
    <section class="table" aria-label={caption} tabIndex={0}>
      <table>
        <caption class="unseen">{caption}</caption>
        <thead>
          <tr>
            {columns.map(column => (
              <th
                key={column.name}
                scope="col"
                class={classes(column)}
                title={column.about}
                aria-sort={order?.name === column.name ? (order.isDescending ? 'descending' : 'ascending') : undefined}
              >
                {column.name === '' ? (
                  <span class="unseen">Actions</span>
                ) : column.by === undefined || isOrdered ? (
                  column.name
                ) : (
                  <button
                    type="button"
                    class="sort"
                    onClick={() =>
                      setOrder({ name: column.name, isDescending: order?.name === column.name && !order.isDescending })
                    }
                  >
                    {column.name}
                    <span aria-hidden="true">
                      {order?.name === column.name ? (order.isDescending ? ' ↓' : ' ↑') : ' ↕'}
                    </span>
                  </button>
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {shown.map(row => (
            <tr key={rowKey(row)} class={rowClass?.(row)}>
              {columns.map(column =>
                column.isHeading ? (
                  <th key={column.name} scope="row" class={classes(column)}>
                    {column.show(row)}
                  </th>
                ) : (
                  <td key={column.name} class={classes(column)}>
                    {column.show(row)}
                  </td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}

type Order = { readonly name: string; readonly isDescending: boolean }

function sorted<Row>(
  rows: readonly Row[],
  by: NonNullable<PlainColumn<Row>['by']>,
  isDescending: boolean,
): readonly Row[] {
  return rows.toSorted((left, right) => {
    const [first, second] = [by(left), by(right)]
    if (first === null || second === null) return Number(first === null) - Number(second === null)
    const difference =
      typeof first === 'number' && typeof second === 'number'
        ? first - second
        : String(first).localeCompare(String(second), 'en')
    return isDescending ? -difference : difference
  })
}

function classes<Row>({ isNumber, from, name }: PlainColumn<Row>): string {
  return [isNumber ? 'number' : '', from === undefined ? '' : `from-${from}`, name === '' ? 'tools' : '']
    .filter(Boolean)
    .join(' ')
}
