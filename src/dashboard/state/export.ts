import { type Cell, csvLine } from '../../core/text/csv.ts'
import { authorised, type ExportRoute } from './api.ts'
import { readRequestError } from './api-error.ts'

/**
 * Downloads the answer of a route as a file. Not a link, because the API accepts the token only in a header.
 * `onBytes` reports progress. Throws `RequestError`.
 */
export async function saveFile(
  route: ExportRoute,
  query: Readonly<Record<string, string>>,
  fileName: string,
  onBytes: (bytes: number) => void = () => {},
): Promise<void> {
  const response = await authorised(route, { query })
  if (!response.ok || response.body === null) throw await readRequestError(response)
  const pieces: Blob[] = []
  let bytes = 0
  const reader = response.body.getReader()
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    // The browser may move blobs from memory to disk, but not arrays.
    pieces.push(new Blob([read.value]))
    bytes += read.value.byteLength
    onBytes(bytes)
  }
  const name = /filename="([^"]+)"/.exec(response.headers.get('content-disposition') ?? '')?.[1]
  download(name ?? fileName, new Blob(pieces, { type: response.headers.get('content-type') ?? '' }))
}

/** Downloads what a page shows as CSV, safe to open in a spreadsheet. */
export function saveCsv(name: string, lines: readonly (readonly Cell[])[]): void {
  download(name, new Blob(lines.map(csvLine), { type: 'text/csv; charset=utf-8' }))
}

/** Downloads fields of rows as CSV, under their API names unless `titles` has another. Money is written without an exponent, with all its places. */
export function saveRows<Row>(
  name: string,
  rows: readonly Row[],
  fields: readonly (keyof Row & string)[],
  titles: Readonly<Record<string, string>> = {},
): void {
  const cell = (field: string, value: unknown): Cell =>
    // Text that begins with a minus would be protected as a formula.
    typeof value === 'number' && field.endsWith('_usd') && value >= 0 ? value.toFixed(8) : toCell(value)
  saveCsv(name, [
    fields.map(field => titles[field] ?? field),
    ...rows.map(row => fields.map(field => cell(field, row[field]))),
  ])
}

function toCell(value: unknown): Cell {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? value : null
}

function download(name: string, content: Blob): void {
  const address = URL.createObjectURL(content)
  const link = document.createElement('a')
  link.href = address
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(address), 60_000)
}
