import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { Empty } from './notice.tsx'

export type Column<Row> = {
  readonly name: string
  readonly show: (row: Row) => ComponentChildren
  /** Right-aligned, so that digits line up. */
  readonly isNumber?: boolean
  /** Minimum screen width for this column; absent = always shown. */
  readonly from?: 'middle' | 'wide'
  readonly isHeading?: boolean
  /** Value to sort by; null goes last. Absent = the column does not sort. */
  readonly by?: (row: Row) => number | string | null
}

type TableProps<Row> = {
  readonly caption: string
  readonly columns: readonly Column<Row>[]
  readonly rows: readonly Row[]
  readonly rowKey: (row: Row) => string
  readonly rowClass?: ((row: Row) => string) | undefined
  /** Shown in place of a table without rows: what will appear, and the next step. */
  readonly empty?: readonly [title: string, about: ComponentChildren]
}

/** A table that scrolls horizontally within the page, also by keyboard. */
export function Table<Row>({ caption, columns, rows, rowKey, rowClass, empty }: TableProps<Row>) {
  const [order, setOrder] = useState<Order | null>(null)
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
                aria-sort={order?.name === column.name ? (order.isDescending ? 'descending' : 'ascending') : undefined}
              >
                {column.name === '' ? (
                  <span class="unseen">Actions</span>
                ) : column.by === undefined ? (
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

function sorted<Row>(rows: readonly Row[], by: NonNullable<Column<Row>['by']>, isDescending: boolean): readonly Row[] {
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

function classes<Row>({ isNumber, from, name }: Column<Row>): string {
  return [isNumber ? 'number' : '', from === undefined ? '' : `from-${from}`, name === '' ? 'tools' : '']
    .filter(Boolean)
    .join(' ')
}
