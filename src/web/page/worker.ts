/** Parses pages in a separate thread, so that a large or hostile page does not delay requests. */

import { getDocumentProxy } from 'unpdf'
import type { Content } from './content.ts'
import { type ReadText, readHtml } from './html.ts'

/** Extracts the text of a PDF's first pages, which usually state its topic. */
const maximumPages = 30

/** Reads pages until `enoughCharacters` are found. Rejects if it is not a PDF, or needs a password. */
async function readPdf(bytes: Uint8Array, enoughCharacters: number): Promise<ReadText> {
  const document = await getDocumentProxy(bytes, {
    // Nothing is drawn, so no fonts are needed.
    disableFontFace: true,
    useSystemFonts: false,
    // Suppresses warnings about the page.
    verbosity: 0,
  })
  try {
    let text = ''
    for (let number = 1; number <= Math.min(document.numPages, maximumPages); number++) {
      if (text.length >= enoughCharacters) break
      const page = await document.getPage(number)
      const { items } = await page.getTextContent()
      for (const item of items) if ('str' in item) text += item.str + (item.hasEOL ? '\n' : '')
      text += '\n'
      page.cleanup()
    }
    return { title: await getTitle(document), text: text.trim() }
  } finally {
    await document.cleanup()
  }
}

async function getTitle(document: Awaited<ReturnType<typeof getDocumentProxy>>): Promise<string> {
  const { info } = await document.getMetadata()
  return 'Title' in info && typeof info.Title === 'string' ? info.Title : ''
}

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
