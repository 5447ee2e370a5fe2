/**
 * Decodes escaped URLs: dots in brackets or as words, URL escapes (`%2e`, also doubled), HTML escapes (`&#46;`), JSON
 * and program escapes (`\u002e`), Markdown (`\.`). Escapes of characters that end a URL stay, so that text after a `?`
 * is not moved before it.
 */

import { isOfName, isWideDot } from './idna-mapping.ts'

/** Returns a text with its escapes decoded once; null if it has none. Double escapes stay escaped once. Linear. */
export function unescapeUrls(text: string): string | null {
  const plain = text.replace(escapes, decoded)
  return plain === text ? null : plain
}

const named: Readonly<Record<string, number>> = {
  'period;': 46,
  'sol;': 47,
  'colon;': 58,
  'commat;': 64,
  'shy;': 0xad,
  'zwj;': 0x200d,
  'zwnj;': 0x200c,
  'ZeroWidthSpace;': 0x200b,
}

/** One continuation byte of UTF-8. `25` repeats where a percent sign was escaped itself. */
const more = '%(?:25)*[89ab][0-9a-f]'
const inBrackets = ['\\[\\]', '\\(\\)', '\\{\\}'].map(
  pair => `${pair.slice(0, 2)}[ \\n]?(?:\\.|dot)[ \\n]?${pair.slice(2)}`,
)
const escapes = new RegExp(
  [
    '%(?:25)*[0-7][0-9a-f]',
    `%(?:25)*(?:[cd][0-9a-f]${more}|e[0-9a-f](?:${more}){2}|f[0-7](?:${more}){3})`,
    `&(?:#\\d{1,8};?|#x[0-9a-f]{1,8};?|${Object.keys(named).join('|')})`,
    '\\\\{1,2}(?:[./]|u[0-9a-f]{4}|x[0-9a-f]{2})',
    // `[.]`, `(dot)`, with optional blanks around and inside; ` dot ` between blanks; `[.` that nothing closes.
    `[ \\n]?(?:${inBrackets.join('|')}|<[ \\n]?dot[ \\n]?>)[ \\n]?`,
    '[ \\n]dot[ \\n]',
    '[[({][ \\n]?\\.',
  ].join('|'),
  'gi',
)

function decoded(form: string): string {
  const code = getCode(form)
  return staysInUrl(code) ? String.fromCodePoint(isWideDot(code) ? dot : code) : form
}

const dot = 46

/** Returns the character that an escape stands for; −1 = none. */
function getCode(form: string): number {
  const last = form.charCodeAt(form.length - 1)
  if (form.startsWith('%')) {
    if (form.lastIndexOf('%') === 0) return Number.parseInt(form.slice(-2), 16)
    try {
      return decodeURIComponent(form.replace(/%(?:25)*/g, '%')).codePointAt(0) ?? -1
    } catch {
      return -1
    }
  }
  if (form.startsWith('\\')) return last === dot || last === 47 ? last : Number.parseInt(form.replace(/\\+./, ''), 16)
  if (!form.startsWith('&')) return dot
  if (form.charAt(1) !== '#') return named[form.slice(1)] ?? -1
  const isHex = /[xX]/.test(form.charAt(2))
  return Number.parseInt(form.slice(isHex ? 3 : 2), isHex ? 16 : 10)
}

const stays = Uint8Array.from({ length: 128 }, (_, code) => (/[\w./\\?#:@-]/.test(String.fromCharCode(code)) ? 1 : 0))

/** Returns true for a character that may occur in a URL without ending it. */
function staysInUrl(code: number): boolean {
  return code < 128 ? stays[code] === 1 : code <= 0x10ffff && isOfName(code > 0xffff ? 0xd800 : code)
}
