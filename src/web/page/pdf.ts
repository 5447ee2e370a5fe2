/** Extracts the text of a PDF's first pages, which usually state its topic. */
import { getDocumentProxy } from 'unpdf'
import type { ReadText } from './html.ts'

const maximumPages = 30

/** Reads pages until `enoughCharacters` are found. Rejects if it is not a PDF, or needs a password. */
export async function readPdf(bytes: Uint8Array, enoughCharacters: number): Promise<ReadText> {
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
