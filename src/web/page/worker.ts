/** Parses pages in a separate thread, so that a large or hostile page does not delay requests. */
import type { Content } from './content.ts'
import { type ReadText, readHtml } from './html.ts'
import { readPdf } from './pdf.ts'

declare const self: Worker

const longestTitle = 1_000

/** Content that must be parsed. */
export type PageBody = Exclude<Content, { readonly kind: 'text' | 'json' }>
export type ReadOrder = { readonly id: number; readonly content: PageBody; readonly enoughCharacters: number }
/** `read` is null if the page could not be parsed. */
export type ReadReport = { readonly id: number; readonly read: ReadText | null }

self.onmessage = async (event: MessageEvent<ReadOrder>) => {
  const { id, content, enoughCharacters } = event.data
  let read: ReadText | null = null
  try {
    read = await readContent(content, enoughCharacters)
  } catch {
    // A page that fails to parse is omitted.
  }
  self.postMessage({ id, read } satisfies ReadReport)
}

async function readContent(content: PageBody, enoughCharacters: number): Promise<ReadText> {
  const { title, text } =
    content.kind === 'html' ? readHtml(content.text) : await readPdf(content.bytes, enoughCharacters)
  return { title: title.slice(0, longestTitle), text: text.slice(0, enoughCharacters) }
}
