/**
 * Which signs a text has: first characters of keys and of escaped URLs, characters that hide words. One pass finds all of
 * them, so that nothing searches a text without its sign; nearly all texts have none.
 */
import { filledTable, loadUnits, unitCount, units } from './code-units.ts'
import { coatOff, isDisguise, resemblesLatin } from './disguises/confusables.ts'
import { isWideDot } from './hosts/hostname.ts'

/** Bits of what `readSigns` returns. */
export const textSigns = {
  /** The first characters of a key. */
  key: 1,
  /** A character that may hide within a key. */
  coat: 2,
  /** The first characters of an escape in a URL. */
  escape: 4,
  wideDot: 8,
  /** An invisible character, or a letter in a style. */
  hidden: 16,
  /** A Cyrillic or Greek letter beside a Latin one. */
  mixed: 32,
  /** A digit or mark within a word. */
  leet: 64,
  /** Single letters between separators. */
  spaced: 128,
} as const

/** What may stand at a place of a form: some ASCII characters, or the other units that a function tells. */
type Place = string | ((unit: number) => boolean)
type Form = readonly [of: number, ...places: readonly Place[]]

const letters = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ'
const hexDigits = '0123456789abcdefABCDEF'
const separators = ' .-_'
/** Digits and marks that stand for letters. */
const letterSigns = '013457@$!'

/** Two sets of forms, since each place of a form is a bit. */
const formSets: readonly (readonly Form[])[] = [
  [
    [textSigns.key, 'sr', 'k', '-_'],
    [textSigns.key, 'p', 'a', 't', '-'],
    [textSigns.key, '-', '-', 'B'],
    [textSigns.key, 'x', 'o', 'x'],
    // github_pat, gw_live, npm_ and hf_.
    [textSigns.key, 'ugph', 'bwmf', '_'],
    [textSigns.key, 'g', 'h', 'pousr', '_'],
    // AKIA, ASIA, AIza
    [textSigns.key, 'A', 'KSI', 'Iz'],
    [textSigns.key, 'S', 'G', '.'],
    [textSigns.key, 'e', 'y', 'J'],
    [textSigns.wideDot, isWideDot],
    [textSigns.coat, unit => coatOff(unit) !== unit],
  ],
  [
    [textSigns.escape, '[({', '.', `])} ${letters}0123456789`],
    [textSigns.escape, '[({< \n', 'dD', 'oO', 'tT', '])}> \n'],
    [textSigns.escape, '%', '234567cCdDeEfF', hexDigits],
    [textSigns.escape, '\\', './'],
    [textSigns.escape, '\\', 'xu', hexDigits],
    [textSigns.escape, '&', '#pcszZ', '0123456789xXeohwW'],
    [textSigns.hidden, isDisguise],
    [textSigns.mixed, letters, resemblesLatin],
    [textSigns.mixed, resemblesLatin, letters],
    [textSigns.leet, letters, letterSigns, letters + letterSigns],
    [textSigns.spaced, separators, letters, separators, letters, separators],
  ],
]

type Forms = {
  /** By UTF-16 unit: the places where it may stand, one bit each. */
  readonly fits: Int32Array
  /** Bits of the first places, and of the last ones. */
  readonly firsts: number
  readonly lasts: number
  /** By the number of a bit: the sign of the form that ends there. */
  readonly signs: Uint8Array
}

function compileForms(forms: readonly Form[]): Forms {
  const all = forms.flatMap(([, ...of]) => of)
  if (all.length > 32) throw new RangeError('At most 32 places.')
  const places = all.map(place => (typeof place === 'string' ? place : ''))
  const asked = all.flatMap((place, at) => (typeof place === 'string' ? [] : [[at, place] as const]))
  const signs = new Uint8Array(32)
  let firsts = 0
  let lasts = 0
  let bit = 0
  for (const [of, ...own] of forms) {
    firsts |= 1 << bit
    bit += own.length
    lasts |= 1 << (bit - 1)
    signs[bit - 1] = of
  }
  const fits = filledTable(new Int32Array(unitCount), unit => {
    if (unit > 127) return asked.reduce((bits, [at, allows]) => (allows(unit) ? bits | (1 << at) : bits), 0)
    const character = String.fromCharCode(unit)
    return places.reduce((bits, place, at) => (place.includes(character) ? bits | (1 << at) : bits), 0)
  })
  return { fits, firsts, lasts, signs }
}

let compiled: readonly [Forms, Forms] | null = null

function getForms(): readonly [Forms, Forms] {
  const [first = [], second = []] = formSets
  compiled ??= [compileForms(first), compileForms(second)]
  return compiled
}

let lastText: string | null = null
let lastSigns = 0

/** Returns the bits of all signs that a text has. Linear; repeating the last text returns its bits. */
export function readSigns(text: string): number {
  if (text === lastText) return lastSigns
  const [keys, others] = getForms()
  const { fits: keyFits, firsts: keyFirsts } = keys
  const { fits, firsts } = others
  // All forms are matched in parallel; each unit that fits shifts the bits.
  let openKeys = 0
  let foundKeys = 0
  let open = 0
  let found = 0
  for (let from = 0; from < text.length; ) {
    const length = loadUnits(text, from)
    for (let at = 0; at < length; at++) {
      const unit = units[at] ?? 0
      openKeys = ((openKeys << 1) | keyFirsts) & (keyFits[unit] ?? 0)
      foundKeys |= openKeys
      open = ((open << 1) | firsts) & (fits[unit] ?? 0)
      found |= open
    }
    from += length
  }
  lastSigns = getSigns(keys, foundKeys) | getSigns(others, found)
  lastText = text
  return lastSigns
}

function getSigns({ lasts, signs }: Forms, found: number): number {
  let all = 0
  for (let ended = found & lasts; ended !== 0; ended &= ended - 1) all |= signs[31 - Math.clz32(ended & -ended)] ?? 0
  return all
}
