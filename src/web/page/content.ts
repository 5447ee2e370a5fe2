/**
 * Decides what a body contains, from its content type and its bytes. Either may exclude it, and the bytes take
 * precedence.
 */
import { PageFailure } from './failure.ts'

/** PDF stays bytes, everything else is decoded. */
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

/** Returns the kind of a content type; null = not supported. Without a type the bytes decide. */
export function findKind(contentType: string | undefined): Kind | null {
  const type = (contentType ?? 'text/html').split(';')[0]?.trim().toLowerCase() ?? ''
  return kinds[type] ?? (/^application\/[\w.-]+\+json$/.test(type) ? 'json' : null)
}

/** Returns the body as content. Throws `PageFailure` `unreadable` if it cannot be read, whatever its type. */
export function getContent(bytes: Uint8Array, contentType: string | undefined): Content {
  const said = findKind(contentType)
  if (said === null) throw new PageFailure('unreadable', 'unsupported content type')
  if (isPdf(bytes, said === 'pdf' ? 1024 : pdfMagic.length)) return { kind: 'pdf', bytes }
  if (said === 'pdf') throw new PageFailure('unreadable', 'declared as PDF, but is not')
  const text = decode(bytes, contentType ?? '', said === 'html')
  // Binary files contain NUL characters; text does not.
  if (text.includes('\0')) throw new PageFailure('unreadable', 'declared as text, but is not')
  const start = text.slice(0, 512).trimStart().toLowerCase()
  const isPage = start.startsWith('<!doctype html') || start.startsWith('<html')
  return isPage || said === 'html' ? { kind: 'html', text } : { kind: said, text }
}

const pdfMagic = Buffer.from('%PDF-')

/** Some PDFs begin with other bytes. They are only accepted with the PDF content type. */
function isPdf(bytes: Uint8Array, searchedBytes: number): boolean {
  return getHead(bytes, searchedBytes).includes(pdfMagic)
}

function getHead(bytes: Uint8Array, length: number): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, length))
}

const byteOrderMarks = [
  ['utf-8', [0xef, 0xbb, 0xbf]],
  ['utf-16le', [0xff, 0xfe]],
  ['utf-16be', [0xfe, 0xff]],
] as const

/**
 * Decodes with the first applicable encoding: byte order mark, header, the page's declaration, UTF-8 if valid, else
 * windows-1252.
 */
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

/** Finds `<meta charset=…>` or its `http-equiv` form within the first bytes, as browsers do. */
function ownWord(bytes: Uint8Array): string | null {
  const head = getHead(bytes, 2048).toString('latin1')
  const found = /<meta[^>]{0,200}charset\s*=\s*["']?([\w:.-]{1,40})/i.exec(head)?.[1]
  // A page whose declaration is readable as ASCII is not UTF-16.
  return found === undefined ? null : /^utf-16/i.test(found) ? 'utf-8' : found
}

function decoderFor(name: string): InstanceType<typeof TextDecoder> | null {
  try {
    // Invalid bytes become U+FFFD: a page with one broken character is still usable.
    return new TextDecoder(name.toLowerCase() as Bun.Encoding)
  } catch {
    return null
  }
}
