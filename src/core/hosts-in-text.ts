/**
 * The hosts that a text points at, however they are dressed: scheme or none, any case, port, user-info, `www`, a trailing
 * dot, Markdown, `hxxp` and `[.]`, percent-encoding, full-width dots, IDN or punycode. What stands behind `?` or `#` of an
 * address is not one. Linear: candidates are found by their dots and read once outwards.
 */

/** Calls `onHost` with each host, lower case, ASCII, without a trailing dot, until it returns false. Doubles may come. */
export function hostsIn(text: string, onHost: (host: string) => boolean): void {
  const plain = mayBeDressed(text) ? undressed(text) : text
  let from = 0
  for (let dot = plain.indexOf('.'); dot !== -1; dot = plain.indexOf('.', Math.max(dot + 1, from))) {
    // A dot that ends a sentence joins no labels.
    if (dot < from || !mayJoin(plain.charCodeAt(dot - 1)) || !mayJoin(plain.charCodeAt(dot + 1))) continue
    const start = stretchStart(plain, dot, from)
    const end = stretchEnd(plain, dot)
    from = end
    const host = hostOf(plain, start, end)
    if (host !== null && !onHost(host)) return
  }
}

const maximumHost = 253
const maximumStretch = 2_048

/** Forms that hide a dot or a letter of a host. */
const dressings = ['[.', '(.)', '{.', 'dot]', 'dot)', 'DOT]', 'DOT)', '%2e', '%2E']

/** Each of these forms needs one of these characters, and looking for one character costs next to nothing. */
const dressers = ['[', '(', '{', '%']

function mayBeDressed(text: string): boolean {
  if (dressers.some(mark => text.includes(mark)) && dressings.some(form => text.includes(form))) return true
  return isBeyondAscii(text) && hasWide(text)
}

/** Wide dots, invisible characters, full-width letters. */
function hasWide(text: string): boolean {
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at)
    if (unit < 0xad) continue
    if (unit === 0xad || unit === 0x2060 || unit === 0x3002 || unit === 0xfeff || unit === 0xff61) return true
    if ((unit >= 0x200b && unit <= 0x200d) || (unit >= 0xff10 && unit <= 0xff5a) || unit === 0xff0e) return true
  }
  return false
}

/** ASCII alone is as long in bytes as in characters. */
function isBeyondAscii(text: string): boolean {
  return Buffer.byteLength(text) !== text.length
}

function undressed(text: string): string {
  return text
    .replace(/\[\.\]|\(\.\)|\{\.\}|\s?\[dot\]\s?|\s?\(dot\)\s?|%2e|[\u3002\uff0e\uff61]/gi, '.')
    .replace(/[\u00ad\u200b-\u200d\u2060\ufeff]/g, '')
    .replace(/[\uff10-\uff5a]/g, letter => String.fromCharCode(letter.charCodeAt(0) - 0xfee0))
}

/** Where the stretch around a dot begins: behind the last character that no address holds. */
function stretchStart(text: string, dot: number, from: number): number {
  const least = Math.max(from, dot - maximumStretch)
  let start = dot
  while (start > least && inStretch(text.charCodeAt(start - 1))) start--
  return start
}

function stretchEnd(text: string, dot: number): number {
  const most = Math.min(text.length, dot + maximumStretch)
  let end = dot + 1
  while (end < most && inStretch(text.charCodeAt(end))) end++
  return end
}

/** White space, quotes and brackets end an address. */
const ends = Uint8Array.from({ length: 128 }, (_, code) =>
  '"\'()<>`|{}[],;'.includes(String.fromCharCode(code)) ? 1 : 0,
)

function inStretch(code: number): boolean {
  return code < 128 ? code > 32 && ends[code] === 0 : code !== 0xa0 && code !== 0x3000 && code !== 0x3001
}

/** The host that a stretch without white space names: what stands before its path, query or fragment. */
function hostOf(text: string, start: number, end: number): string | null {
  let from = start
  let to = pathStart(text, start, end)
  // What ends before a slash is a scheme where a colon stands there.
  if (to < end && isSlash(text.charCodeAt(to)) && (to === start || text.charCodeAt(to - 1) === colon)) {
    from = to
    while (from < end && from - to < 3 && isSlash(text.charCodeAt(from))) from++
    to = pathStart(text, from, end)
  }
  let last = to
  while (last > from && !isPlain(text.charCodeAt(last - 1)) && text.charCodeAt(last - 1) < 128) last--
  let port = last
  while (port > from && isDigit(text.charCodeAt(port - 1))) port--
  if (port > from && text.charCodeAt(port - 1) === colon) last = port - 1
  let first = last
  while (first > from && isPlain(text.charCodeAt(first - 1))) first--
  const isOdd = first > from && (text.charCodeAt(first - 1) === percent || text.charCodeAt(first - 1) > 127)
  return normalHost(isOdd ? decodedHost(text.slice(from, last)) : text.slice(first, last))
}

/** The host among escapes and letters beyond ASCII. */
function decodedHost(text: string): string {
  const authority = decoded(text).replace(/[/\\?#].*$/s, '')
  const host = authority.slice(authority.lastIndexOf('@') + 1).replace(/:\d*$/, '')
  let first = host.length
  while (first > 0 && !joining.includes(host.charAt(first - 1))) first--
  return host.slice(first)
}

/** Marks that put something before a host and are none of it. */
const joining = '=:&*!~^$%+'

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

const colon = 58
const percent = 37

function pathStart(text: string, start: number, end: number): number {
  let at = start
  while (at < end) {
    const code = text.charCodeAt(at)
    if (isSlash(code) || code === 63 || code === 35 || code === 38) return at
    at++
  }
  return end
}

function isSlash(code: number): boolean {
  return code === 47 || code === 92
}

function isDigit(code: number): boolean {
  return code >= 48 && code <= 57
}

/** Letters, digits, `.`, `-`, `_` of ASCII. */
function isPlain(code: number): boolean {
  return (
    (code >= 97 && code <= 122) ||
    isDigit(code) ||
    (code >= 65 && code <= 90) ||
    code === 46 ||
    code === 45 ||
    code === 95
  )
}

/** Lower case, ASCII, no leading or trailing dots or marks; null where it is no host name with a dot in it. */
export function normalHost(raw: string): string | null {
  let start = 0
  let end = raw.length
  while (start < end && !isHostUnit(raw.charCodeAt(start))) start++
  while (end > start && !isHostUnit(raw.charCodeAt(end - 1))) end--
  const host = raw.slice(start, end).toLowerCase()
  if (host.length < 3 || host.length > maximumHost * 4 || !host.includes('.') || host.includes('..')) return null
  if (/^[a-z0-9._-]+$/.test(host)) return host.length <= maximumHost && /[a-z]/.test(host) ? host : null
  if (!/^[\p{L}\p{N}\p{M}._-]+$/u.test(host)) return null
  return asciiHost(resolvable(host.replace(/\p{Default_Ignorable_Code_Point}/gu, '')))
}

const maximumLabel = 63

/** As many labels from the end as a name can hold: to spell one in ASCII takes the square of its length. */
function resolvable(host: string): string {
  const end = host.slice(-maximumHost - 1)
  const labels = end.split('.')
  const whole = end.length > maximumHost ? 0 : -1
  return labels
    .slice(
      Math.max(
        whole,
        labels.findLastIndex(label => label.length > maximumLabel),
      ) + 1,
    )
    .join('.')
}

function mayJoin(code: number): boolean {
  return isHostUnit(code) || code === percent || code === 45 || code === 95
}

function isHostUnit(code: number): boolean {
  return code > 127 || (isPlain(code) && code !== 46 && code !== 45 && code !== 95)
}

function asciiHost(host: string): string | null {
  const name = host.includes('.') ? URL.parse(`http://${host}`)?.hostname : undefined
  return name === undefined || name.length > maximumHost ? null : name
}
