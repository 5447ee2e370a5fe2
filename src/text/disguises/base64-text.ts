/** Decodes words written in base64. */

const base64Run = /[A-Za-z0-9+/]{32,8192}={0,2}/g
const shareOfPrintable = 0.95

/** Returns the decoded text of all base64 runs that decode to words, one per line; null if there is none. */
export function textInBase64(text: string): string | null {
  const decoded: string[] = []
  for (const [run] of text.matchAll(base64Run)) {
    const plain = decodedText(run)
    if (plain !== null) decoded.push(plain)
  }
  return decoded.length === 0 ? null : decoded.join('\n')
}

function decodedText(run: string): string | null {
  const bytes = Buffer.from(run, 'base64')
  if (!bytes.includes(space)) return null
  let printable = 0
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] ?? 0
    if ((byte >= space && byte <= tilde) || byte === lineFeed) printable++
  }
  return printable >= bytes.length * shareOfPrintable ? bytes.toString('latin1') : null
}

const space = 32
const tilde = 126
const lineFeed = 10
