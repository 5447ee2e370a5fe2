/** What a body is, by what its server says and by what it is seen to be: either may forbid it, and bytes win over words. */
import { PageFailure } from './failure.ts'

/** PDF stays bytes, the rest is decoded. */
export type Content =
  | { readonly kind: 'html'; readonly text: string }
  | { readonly kind: 'text' | 'json'; readonly text: string }
  | { readonly kind: 'pdf'; readonly bytes: Uint8Array }

type Kind = Content['kind']

const kinds: Readonly<Record<string, Kind>> = {
  'text/html': 'html',
  'application/xhtml+xml': 'html',
  'text/plain': 'text',
  'text/markdown': 'text',
  'text/csv': 'text',
  'text/xml': 'html',
  'application/xml': 'html',
  'application/json': 'json',
  'application/pdf': 'pdf',
}

/** The kind of a content type; null = not one that is read. No type at all is looked at. */
export function kindOf(contentType: string | undefined): Kind | null {
  const type = (contentType ?? 'text/html').split(';')[0]?.trim().toLowerCase() ?? ''
  return kinds[type] ?? (/^application\/[\w.-]+\+json$/.test(type) ? 'json' : null)
}

/** The body as content. Throws `PageFailure` `unreadable` for what is nothing to read, whatever its type says. */
export function contentOf(bytes: Uint8Array, contentType: string | undefined): Content {
  const said = kindOf(contentType)
  if (said === null) throw new PageFailure('unreadable', 'of a type that is not read')
  if (isPdf(bytes, said === 'pdf' ? 1024 : pdfMagic.length)) return { kind: 'pdf', bytes }
  if (said === 'pdf') throw new PageFailure('unreadable', 'says that it is a PDF, and is none')
  const text = decode(bytes, contentType ?? '', said === 'html')
  // Binary files contain NUL characters; text does not.
  if (text.includes('\0')) throw new PageFailure('unreadable', 'says that it is text, and is none')
  const start = text.slice(0, 512).trimStart().toLowerCase()
  const isPage = start.startsWith('<!doctype html') || start.startsWith('<html')
  return isPage || said === 'html' ? { kind: 'html', text } : { kind: said, text }
}

const pdfMagic = Buffer.from('%PDF-')

/** Some begin with a few other bytes, which only who says that it is one is believed. */
function isPdf(bytes: Uint8Array, searchedBytes: number): boolean {
  return headOf(bytes, searchedBytes).includes(pdfMagic)
}

function headOf(bytes: Uint8Array, length: number): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, length))
}

const byteOrderMarks = [
  ['utf-8', [0xef, 0xbb, 0xbf]],
  ['utf-16le', [0xff, 0xfe]],
  ['utf-16be', [0xfe, 0xff]],
] as const

/** The first that can be: byte order mark, header, the page's own word, UTF-8 where it fits, and what the web once was. */
function decode(bytes: Uint8Array, contentType: string, isHtml: boolean): string {
  const marked = byteOrderMarks.find(([, mark]) => mark.every((byte, at) => bytes[at] === byte))?.[0]
  const named =
    marked ?? /charset\s*=\s*["']?([\w:.-]{1,40})/i.exec(contentType)?.[1] ?? (isHtml ? ownWord(bytes) : null)
  if (named !== null) {
    const decoder = decoderFor(named)
    if (decoder !== null) return decoder.decode(bytes)
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return new TextDecoder('windows-1252').decode(bytes)
  }
}

/** `<meta charset=…>`, or the one in `http-equiv`, within the first bytes, as browsers look for it. */
function ownWord(bytes: Uint8Array): string | null {
  const head = headOf(bytes, 2048).toString('latin1')
  const found = /<meta[^>]{0,200}charset\s*=\s*["']?([\w:.-]{1,40})/i.exec(head)?.[1]
  // A page that could be read so far is not UTF-16.
  return found === undefined ? null : /^utf-16/i.test(found) ? 'utf-8' : found
}

function decoderFor(name: string): InstanceType<typeof TextDecoder> | null {
  try {
    // Wrong bytes become U+FFFD: a page with one broken character is still a page.
    return new TextDecoder(name.toLowerCase() as Bun.Encoding)
  } catch {
    return null
  }
}
