/** Secrets that callers paste into prompts: keys of known shapes, private keys, payment cards. */

import type { Message } from './chat.ts'

export type Leak = { readonly kind: string; readonly from: number; readonly to: number }

/** All leaks of a text, in order, none inside another; at most `maximumLeaks`. Linear: every shape has a fixed beginning and a bound. */
export function leaksIn(text: string): readonly Leak[] {
  if (!hasBeginning(text) && !hasDigits(text)) return none
  if (!mayLeak.test(text)) return none
  const leaks: Leak[] = []
  for (const match of text.matchAll(shapes)) {
    if (leaks.length >= maximumLeaks) break
    const [found] = match
    const kind = Object.entries(match.groups ?? {}).find(([, group]) => group !== undefined)?.[0] ?? 'key'
    if (kind === 'card' && !isCard(found)) continue
    if (match.index < (leaks.at(-1)?.to ?? 0)) continue
    const to = kind === 'private_key' ? endOfKey(text, match.index + found.length) : match.index + found.length
    leaks.push({ kind, from: match.index, to })
  }
  return leaks
}

/** The kinds of all leaks in what a message says. */
export function leakKindsIn(message: Message): readonly string[] {
  const kinds = new Set<string>()
  for (const text of writtenIn(message)) for (const { kind } of leaksIn(text)) kinds.add(kind)
  return [...kinds]
}

function writtenIn(message: Message): readonly string[] {
  switch (message.role) {
    case 'system':
    case 'tool':
      return [message.text]
    case 'user':
      return message.content.flatMap(part => (part.type === 'text' ? [part.text] : []))
    case 'assistant':
      return [message.text ?? '', ...message.toolCalls.map(call => call.arguments)]
    default:
      return message satisfies never
  }
}

/** The text with every leak replaced by its kind. */
export function masked(text: string, leaks: readonly Leak[]): string {
  let out = ''
  let at = 0
  for (const { kind, from, to } of leaks) {
    out += `${text.slice(at, from)}[${kind} removed]`
    at = to
  }
  return out + text.slice(at)
}

const none: readonly Leak[] = []
const maximumLeaks = 64

/**
 * Whether some shape but a card's may begin somewhere: each has one of these characters with one of those beside it, and
 * looking for one character costs next to nothing.
 */
function hasBeginning(text: string): boolean {
  return (
    // sk-, glpat-, xoxa- and five dashes.
    isBeside(text, '-', -1, 'kt') ||
    isBeside(text, '-', 1, '-') ||
    isBeside(text, '-', -2, 'x') ||
    // sk_live, github_pat, gw_live, npm_, hf_ and ghp_.
    isBeside(text, '_', -1, 'kbwmf') ||
    isBeside(text, '_', -2, 'h') ||
    isBeside(text, 'A', 1, 'KSI') ||
    isBeside(text, 'S', 1, 'G') ||
    isBeside(text, 'J', -1, 'y')
  )
}

function isBeside(text: string, mark: string, offset: number, others: string): boolean {
  for (let at = text.indexOf(mark); at !== -1; at = text.indexOf(mark, at + 1))
    if (at + offset >= 0 && others.includes(text[at + offset] ?? 'none')) return true
  return false
}

/** Whether there may be as many digits in a row as a card has, blanks and dashes among them: such a row covers one of every so many places. */
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
  return (code >= 48 && code <= 57) || code === 32 || code === 45
}

/** Spares ordinary text the long look: every shape has one of these, or many digits. */
const mayLeak =
  /(?:sk|xox[a-z])-|[sr]k_live|A[KS]IA|gh[a-z]_|github_pat|glpat|AIza|gw_live|npm_|hf_|SG\.|eyJ|PRIVATE KEY|\d{4}[ -]?\d{4}[ -]?\d/

const shapes = new RegExp(
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
    '(?<jwt>\\beyJ[A-Za-z0-9_-]{10,1024}\\.eyJ[A-Za-z0-9_-]{10,2048}\\.[A-Za-z0-9_-]{20,1024})',
    '(?<private_key>-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----)',
    '(?<card>\\b\\d[\\d -]{11,21}\\d\\b)',
  ].join('|'),
  'g',
)

const longestKey = 16_384

function endOfKey(text: string, from: number): number {
  const body = text.slice(from, from + longestKey)
  const end = body.indexOf('-----END')
  if (end === -1) return from + body.length
  const close = body.indexOf('-----', end + 8)
  return from + (close === -1 ? end + 8 : close + 5)
}

/** Luhn's check over 13 to 19 digits, of a network's own range. */
function isCard(found: string): boolean {
  const digits = found.replace(/\D/g, '')
  if (digits.length < 13 || digits.length > 19 || !/^(?:4|5[1-5]|2[2-7]|3[47]|6)/.test(digits)) return false
  let sum = 0
  for (let at = digits.length - 1, twice = false; at >= 0; at--, twice = !twice) {
    const digit = Number(digits[at]) * (twice ? 2 : 1)
    sum += digit > 9 ? digit - 9 : digit
  }
  return sum % 10 === 0
}
