import { authorised } from './api.ts'
import { failureOf } from './api-error.ts'

/**
 * Fetches the request log as a file and hands it to the browser. Not a link: the API takes the token in a header alone.
 * `onBytes` is told how much has come. Throws `Failure`.
 */
export async function saveExport(
  format: 'csv' | 'json',
  filters: Readonly<Record<string, string>>,
  onBytes: (bytes: number) => void,
): Promise<void> {
  const response = await authorised('GET /api/v1/requests/export', { query: { ...filters, format } })
  if (!response.ok || response.body === null) throw await failureOf(response)
  const pieces: Blob[] = []
  let bytes = 0
  const reader = response.body.getReader()
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    // Blobs may leave memory for the disk; arrays cannot.
    pieces.push(new Blob([read.value]))
    bytes += read.value.byteLength
    onBytes(bytes)
  }
  const address = URL.createObjectURL(new Blob(pieces, { type: response.headers.get('content-type') ?? '' }))
  const link = document.createElement('a')
  link.href = address
  link.download =
    /filename="([^"]+)"/.exec(response.headers.get('content-disposition') ?? '')?.[1] ?? `requests.${format}`
  link.click()
  setTimeout(() => URL.revokeObjectURL(address), 60_000)
}
