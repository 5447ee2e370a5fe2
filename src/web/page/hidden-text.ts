/**
 * Detects elements that readers do not see. Hidden text may be addressed to models, so it is skipped: hidden by
 * attribute, by inline style, or by a class or ID in the page's own style sheet. External sheets are not fetched.
 */

type HiddenTextFilter = {
  /** Adds the text of a `<style>` element. */
  learn(sheet: string): void
  /** Reports a missing external sheet: from now on backgrounds are unknown. */
  missSheet(): void
  /**
   * Returns whether an element's text is hidden, and its background. `behind` is the background of the parent element.
   */
  look(
    name: string,
    attributes: Readonly<Record<string, string>>,
    behind: Behind,
  ): { readonly isHidden: boolean; readonly behind: Behind }
}

const maximumSelectors = 2_000
/** Pages that start invisible are shown by their script, so a rule that hides everything is ignored. */
const neverHidden = new Set(['html', 'body', 'main'])

/** Creates a filter without sheets. */
export function createHiddenTextFilter(): HiddenTextFilter {
  const hidden = new Set<string>()
  let knowsCanvas = true

  const isHidden = (
    name: string,
    attributes: Readonly<Record<string, string>>,
    style: Style,
    behind: Colour | null,
  ) => {
    if (neverHidden.has(name)) return false
    if ('hidden' in attributes || attributes['aria-hidden'] === 'true') return true
    if (hidesBy(style, behind)) return true
    if (hidden.size === 0) return false
    if (attributes.id !== undefined && hidden.has(`#${attributes.id}`)) return true
    return attributes.class?.split(/\s+/).some(part => hidden.has(`.${part}`)) ?? false
  }

  return {
    learn(sheet) {
      knowsCanvas = false
      for (const rule of topRules(sheet)) {
        if (!hidesBy(getStyle(rule.declarations), null)) continue
        for (const selector of rule.selectors.split(',')) {
          const name = selector.trim()
          // Only selectors of a single class or ID. Others may apply in some contexts only.
          if (hidden.size < maximumSelectors && /^[a-z0-9]*[.#][\w-]+$/i.test(name))
            hidden.add(name.slice(name.search(/[.#]/)))
        }
      }
    },
    missSheet() {
      knowsCanvas = false
    },
    look(name, attributes, behind) {
      const isPlain = attributes.style === undefined && attributes.color === undefined
      const style = isPlain ? plainStyle : getStyle(attributes.style ?? '')
      const own =
        findBackground(style) ??
        (attributes.background === undefined ? getPaper(lower(attributes.bgcolor ?? 'none')) : 'unknown')
      const now = own ?? behind
      const colour = now === 'canvas' ? (knowsCanvas ? white : null) : now === 'unknown' ? null : now
      if (attributes.color !== undefined && !style.has('color')) style.set('color', lower(attributes.color))
      return { isHidden: isHidden(name, attributes, style, colour), behind: now }
    },
  }
}

/** Yields rules outside of `@media` and similar blocks, which apply to paper or other screens. */
function* topRules(sheet: string): Generator<{ readonly selectors: string; readonly declarations: string }> {
  const plain = sheet.replace(/\/\*[\s\S]*?(?:\*\/|$)/g, '')
  let depth = 0
  let start = 0
  let selectors = ''
  for (let at = 0; at < plain.length; at++) {
    const character = plain[at]
    if (character === '{') {
      if (depth === 0) selectors = plain.slice(start, at)
      depth++
      start = at + 1
    } else if (character === '}') {
      if (depth === 1 && !selectors.trimStart().startsWith('@'))
        yield { selectors, declarations: plain.slice(start, at) }
      depth = Math.max(0, depth - 1)
      start = at + 1
    }
  }
}

/** No relevant value is longer, and patterns must not run on long untrusted text. */
const longestValue = 64

type Style = ReadonlyMap<string, string>
/** Shared result for nearly all elements. Never written to. */
const plainStyle = new Map<string, string>()

/** Returns declarations by lower-case name; the last one wins. */
function getStyle(declarations: string): Map<string, string> {
  const style = new Map<string, string>()
  if (declarations === '') return style
  for (const declaration of declarations.split(';')) {
    const colon = declaration.indexOf(':')
    const value = declaration
      .slice(colon + 1)
      .replace(/!\s*important/i, '')
      .trim()
      .toLowerCase()
    if (value.length <= longestValue) style.set(declaration.slice(0, colon).trim().toLowerCase(), value)
  }
  return style
}

const farAway = /^-\d{3,}(?:\.\d+)?(?:px|em|rem|pt|%|vw|vh)$/
const isFar = (value: string) => farAway.test(value)
/** The largest size in each unit that is unreadable. */
const unread: Readonly<Record<string, number>> = { '': 0, px: 2, pt: 2, em: 0.1, rem: 0.1, '%': 10, vw: 0.1, vh: 0.1 }

function isTiny(value: string): boolean {
  const [, number = '', unit = ''] = /^\+?(\d*\.?\d+)([a-z%]*)$/.exec(value) ?? []
  return number !== '' && Number(number) <= (unread[unit] ?? -1)
}

const hidingValues: Readonly<Record<string, (value: string) => boolean>> = {
  display: value => value === 'none',
  visibility: value => value === 'hidden' || value === 'collapse',
  'content-visibility': value => value === 'hidden',
  opacity: value => /^\+?0*(?:\.0\d*)?(?:[0-4]%)?$/.test(value) && value !== '',
  filter: value => /opacity\(\s*0?(?:\.0\d*)?%?\s*\)/.test(value),
  font: value => /(?:^|\s)0(?:px|em|rem|pt|%)?(?:\/|\s)/.test(value),
  'font-size': isTiny,
  'text-indent': isFar,
  'margin-left': isFar,
  'margin-top': isFar,
  left: isFar,
  right: isFar,
  top: isFar,
  bottom: isFar,
  transform: value => /scale[xy]?\(\s*0?\.?0*\s*[,)]|translate(?:3d|[xy])?\([^)]{0,24}-\d{3,}/.test(value),
  clip: value => /^rect\(\s*[01](?:px)?[\s,]+[01](?:px)?[\s,]+[01](?:px)?[\s,]+[01](?:px)?\s*\)$/.test(value),
  'clip-path': value => /^(?:inset\(\s*(?:50|100)%\s*\)|circle\(\s*0(?:px|%)?\s*\))$/.test(value),
  color: isClear,
  '-webkit-text-fill-color': isClear,
}

/**
 * Returns true if declarations hide a text, on their own or by a color equal to the background. A box size of 0
 * does not hide text, which overflows visibly unless it is clipped.
 */
function hidesBy(style: Style, behind: Colour | null): boolean {
  if (style.size === 0) return false
  for (const [name, value] of style) if (hidingValues[name]?.(value)) return true
  const isCut = /hidden|clip/.test(`${style.get('overflow')} ${style.get('overflow-x')} ${style.get('overflow-y')}`)
  if (isCut && boxes.some(name => isTiny(style.get(name) ?? ''))) return true
  const ink = findColour(style.get('color') ?? '')
  const own = findBackground(style)
  const paper = own === null ? behind : own
  return ink !== null && Array.isArray(paper) && ink.every((part, at) => Math.abs(part - (paper[at] ?? 0)) <= likeness)
}

const boxes = ['width', 'height', 'max-width', 'max-height']

type Colour = readonly [red: number, green: number, blue: number]
/** Background of a text: a color, the page's own canvas, or unknown. */
export type Behind = Colour | 'canvas' | 'unknown'

const white: Colour = [255, 255, 255]
/** Colors that differ by less look equal. */
const likeness = 16
/** Most of 255 with which a color is transparent, or nearly. */
const clearest = 15

/** Returns red, green, blue and opacity of a color; null for anything else, such as a color before an image. */
function readColour(value: string): readonly number[] | null {
  const read = /^(?:#?\w+|\w+\([^()]*\))$/.test(value) ? Bun.color(value, '[rgba]') : null
  return Array.isArray(read) ? read : null
}

function findColour(value: string): Colour | null {
  const [red, green, blue] = readColour(value) ?? []
  return red === undefined || green === undefined || blue === undefined ? null : [red, green, blue]
}

function isClear(value: string): boolean {
  return (readColour(value)?.[3] ?? 255) <= clearest
}

/** Returns the background of a style; null = none, so the parent's is visible. */
function findBackground(style: Style): Colour | 'unknown' | null {
  return getPaper(style.get('background-color') ?? style.get('background'))
}

function getPaper(said: string | undefined): Colour | 'unknown' | null {
  if (said === undefined || said === 'none' || isClear(said)) return null
  return findColour(said) ?? 'unknown'
}

const lower = (text: string) => text.slice(0, longestValue).trim().toLowerCase()
