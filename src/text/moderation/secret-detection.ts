/** Detects secrets that clients paste into prompts: keys of known formats, private keys, payment cards. */

import type { Message, PromptDefinition } from '../../core/chat/chat.ts'
import { partTexts } from '../../core/chat/request-texts.ts'
import { getPieces, isDigit, isTokenUnit } from '../code-units.ts'
import { coatOff } from '../disguises/confusables.ts'
import { readSigns, textSigns } from '../signs.ts'

export type DetectedSecret = { readonly kind: string; readonly from: number; readonly to: number }

/**
 * Returns all secrets of a text in order, without nesting; at most `maximumLeaks`. Also finds secrets that are split by
 * invisible characters or Markdown bold marks, or written in stylistic variants. Linear: every format has a fixed
 * prefix and a bounded length.
 */
export function detectSecrets(text: string): readonly DetectedSecret[] {
  const leaks = leaksAsWritten(text)
  if ((readSigns(text) & textSigns.coat) === 0 && !isParted(text)) return leaks
  const bare = withoutSeparators(text)
  const others = leaksAsWritten(bare.text).map(({ kind, from, to }) => ({
    kind,
    from: bare.places[from] ?? 0,
    to: (bare.places[to - 1] ?? 0) + 1,
  }))
  return apart([...others, ...leaks])
}

/** No expression reads a text without the first characters of a key, or as many digits as a card has. */
function leaksAsWritten(text: string): readonly DetectedSecret[] {
  const hasKey = (readSigns(text) & textSigns.key) !== 0
  if (!hasDigits(text)) return hasKey ? [...keysIn(text)] : none
  return apart([...(hasKey ? keysIn(text) : []), ...cardsIn(text)])
}

function apart(all: readonly DetectedSecret[]): readonly DetectedSecret[] {
  const leaks: DetectedSecret[] = []
  // Of two with the same start the longer one wins, because it may continue across a split.
  for (const leak of all.toSorted(
    (detectedSecret, other) => detectedSecret.from - other.from || other.to - detectedSecret.to,
  ))
    if (leaks.length < maximumLeaks && leak.from >= (leaks.at(-1)?.to ?? 0)) leaks.push(leak)
  return leaks
}

/** Returns true if bold text begins or ends within a word or before a group of digits. */
function isParted(text: string): boolean {
  for (let at = text.indexOf('**'); at !== -1; at = text.indexOf('**', at + 2))
    if (
      isTokenUnit(text.charCodeAt(at + 2)) &&
      (isTokenUnit(text.charCodeAt(at - 1)) || isCardUnit(text.charCodeAt(at - 2)))
    )
      return true
  return false
}

/** Returns a text without characters that may split a secret, with the original position of each unit. */
function withoutSeparators(text: string): { readonly text: string; readonly places: Uint32Array } {
  const bareUnits = new Uint16Array(text.length)
  const places = new Uint32Array(text.length)
  let count = 0
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at)
    const bare = unit === asterisk ? 0 : unit < 128 ? unit : coatOff(unit)
    if (bare === 0) continue
    bareUnits[count] = bare
    places[count++] = at
  }
  return { text: Buffer.from(bareUnits.buffer).toString('utf16le', 0, 2 * count), places }
}

const asterisk = 42

function* keysIn(text: string): Generator<DetectedSecret> {
  let end = 0
  for (let count = 0; count < maximumLeaks; ) {
    keyShapes.lastIndex = end
    const match = keyShapes.exec(text)
    if (match === null) return
    const kind = kinds.find(name => match.groups?.[name] !== undefined) ?? 'key'
    const from = kind === 'jwt' ? startOfToken(text, match.index, end) : match.index
    const to = keyShapes.lastIndex
    end = from === -1 ? match.index + 1 : kind === 'private_key' ? endOfKey(text, to) : to
    if (from === -1) continue
    count++
    yield { kind, from, to: end }
  }
}

function* cardsIn(text: string): Generator<DetectedSecret> {
  let end = 0
  for (let count = 0; count < maximumLeaks; ) {
    cardShape.lastIndex = end
    const match = cardShape.exec(text)
    if (match === null) return
    end = cardShape.lastIndex
    const card = isCard(match[0]) ? { from: match.index, to: end } : cardAmong(text, match.index)
    if (card === null) continue
    count++
    end = card.to
    yield { kind: 'card', ...card }
  }
}

/** Returns the kinds of all secrets in a message or definition, piece by piece; yields the characters of each piece. */
export function* secretKindSteps(message: Message | PromptDefinition): Generator<number, readonly string[], void> {
  const kinds = new Set<string>()
  for (const text of partTexts(message))
    for (const piece of getPieces(text)) {
      for (const { kind } of detectSecrets(piece)) kinds.add(kind)
      yield piece.length
    }
  return [...kinds]
}

/** Returns the text with every secret replaced by its kind. */
export function maskSecrets(text: string, leaks: readonly DetectedSecret[]): string {
  let out = ''
  let at = 0
  for (const { kind, from, to } of leaks) {
    out += `${text.slice(at, from)}[${kind} removed]`
    at = to
  }
  return out + text.slice(at)
}

const none: readonly DetectedSecret[] = []
const maximumLeaks = 64

/**
 * Returns true if there may be as many digits in a row as a card number has, including blanks and dashes. Such a row
 * covers one of every N positions, so only those are tested.
 */
function hasDigits(text: string): boolean {
  for (let at = 0; at < text.length; at += fewestDigits) {
    let to = at
    while (isCardUnit(text.charCodeAt(to))) to++
    if (to === at) continue
    let from = at
    while (isCardUnit(text.charCodeAt(from - 1))) from--
    if (to - from >= fewestDigits) return true
  }
  return false
}

const fewestDigits = 13

function isCardUnit(code: number): boolean {
  return isDigit(code) || code === 32 || code === 45
}

const keyShapes = new RegExp(
  [
    '(?<anthropic_key>\\bsk-ant-[A-Za-z0-9_-]{20,200})',
    '(?<openai_key>\\bsk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{20,200})',
    '(?<stripe_key>\\b[sr]k_live_[A-Za-z0-9]{16,128})',
    '(?<aws_key>\\b(?:AKIA|ASIA)[A-Z0-9]{16}\\b)',
    '(?<github_token>\\b(?:gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{22,255}))',
    '(?<gitlab_token>\\bglpat-[A-Za-z0-9_-]{20,64})',
    '(?<google_key>\\bAIza[A-Za-z0-9_-]{35})',
    '(?<slack_token>\\bxox[abeprs]-[A-Za-z0-9-]{10,200})',
    '(?<gateway_key>\\bgw_live_[A-Za-z0-9]{12}_[A-Za-z0-9]{49})',
    '(?<npm_token>\\bnpm_[A-Za-z0-9]{36})',
    '(?<huggingface_token>\\bhf_[A-Za-z0-9]{30,64})',
    '(?<sendgrid_key>\\bSG\\.[A-Za-z0-9_-]{16,32}\\.[A-Za-z0-9_-]{16,64})',
    // Searched from its second part on. Searching from the start would read a long row of `eyJ` to its end for each of
    // them.
    '(?<jwt>\\.eyJ[A-Za-z0-9_-]{10,2048}\\.[A-Za-z0-9_-]{20,1024})',
    '(?<private_key>-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----)',
  ].join('|'),
  'g',
)

const kinds = Array.from(keyShapes.source.matchAll(/\(\?<(\w+)>/g), ([, kind]) => kind ?? '')

const [shortestPart, longestPart] = [13, 1_027]

/** Returns the start of the JSON web token whose second part begins at `dot`; −1 = none. */
function startOfToken(text: string, dot: number, least: number): number {
  let from = dot
  while (from > least && dot - from <= longestPart && isTokenUnit(text.charCodeAt(from - 1))) from--
  for (let at = text.indexOf('eyJ', from); at !== -1 && dot - at >= shortestPart; at = text.indexOf('eyJ', at + 1))
    if (dot - at <= longestPart && (at === 0 || /\W/.test(text.charAt(at - 1)))) return at
  return -1
}

const longestKey = 16_384

function endOfKey(text: string, from: number): number {
  const body = text.slice(from, from + longestKey)
  const end = body.indexOf('-----END')
  if (end === -1) return from + body.length
  const close = body.indexOf('-----', end + 8)
  return from + (close === -1 ? end + 8 : close + 5)
}

const cardShape = /\b\d[\d -]{11,21}\d\b/g
/** Including one blank or dash between its groups. */
const longestCard = 23
const writtenCard = /\b(?:\d{13,19}|\d{4}(?:[ -]\d{4}){3}|\d{4}[ -]\d{6}[ -]\d{4,5})\b/g

/** Finds a card number next to other numbers, such as its expiry date or an amount. */
function cardAmong(text: string, from: number): Pick<DetectedSecret, 'from' | 'to'> | null {
  const near = text.slice(from, from + 2 * longestCard)
  writtenCard.lastIndex = 0
  for (let match = writtenCard.exec(near); match !== null; match = writtenCard.exec(near))
    if (isCard(match[0])) return { from: from + match.index, to: from + writtenCard.lastIndex }
  return null
}

/** Returns true for 13 to 19 digits that pass the Luhn check and belong to a card network. */
function isCard(found: string): boolean {
  let digits = 0
  let sum = 0
  for (let at = found.length - 1; at >= 0; at--) {
    const digit = found.charCodeAt(at) - 48
    if (digit < 0 || digit > 9) continue
    const weighed = digits++ % 2 === 0 ? digit : 2 * digit
    sum += weighed > 9 ? weighed - 9 : weighed
  }
  return (
    digits >= 13 && digits <= 19 && sum % 10 === 0 && /^(?:4|5[1-5]|2[2-7]|3[47]|6)/.test(found.replace(/[ -]/g, ''))
  )
}
