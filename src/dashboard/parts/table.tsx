import type { ComponentChildren } from 'preact'

type Column<Row> = {
  readonly name: string
  readonly show: (row: Row) => ComponentChildren
  /** Right-aligned, so that digits line up. */
  readonly isNumber?: boolean
  /** Minimum screen width for this column; absent = always shown. */
  readonly from?: 'middle' | 'wide'
  readonly isHeading?: boolean
}

type TableProps<Row> = {
  readonly caption: string
  readonly columns: readonly Column<Row>[]
  readonly rows: readonly Row[]
  readonly keyOf: (row: Row) => string
  readonly classOf?: (row: Row) => string
}

/** A table that scrolls horizontally within the page, also by keyboard. */
export function Table<Row>({ caption, columns, rows, keyOf, classOf }: TableProps<Row>) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
    <section class="table" aria-label={caption} tabIndex={0}>
      <table>
        <caption class="unseen">{caption}</caption>
        <thead>
          <tr>
            {columns.map(column => (
              <th key={column.name} scope="col" class={classes(column)}>
                {column.name === '' ? <span class="unseen">Actions</span> : column.name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(row => (
            <tr key={keyOf(row)} class={classOf?.(row)}>
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

function classes<Row>({ isNumber, from, name }: Column<Row>): string {
  return [isNumber ? 'number' : '', from === undefined ? '' : `from-${from}`, name === '' ? 'tools' : '']
    .filter(Boolean)
    .join(' ')
}
