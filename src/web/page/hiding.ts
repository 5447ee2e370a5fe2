/**
 * Which elements a reader never sees. Text is hidden from people to be read by machines, so what a page hides is not read
 * here either: by attribute, by inline style, by the class or id that its own style sheet hides. Sheets from elsewhere are
 * not fetched.
 */

export type Hiding = {
  /** Takes in a `<style>` element's text. */
  learn(sheet: string): void
  hides(name: string, attributes: Readonly<Record<string, string>>): boolean
}

const maximumSelectors = 2_000
/** A page that starts invisible is shown by its script: what hides everything hides nothing. */
const neverHidden = new Set(['html', 'body', 'main'])

/** Knows no sheet yet. */
export function createHiding(): Hiding {
  const hidden = new Set<string>()
  return {
    learn(sheet) {
      for (const rule of topRules(sheet)) {
        if (!hidesBy(rule.declarations)) continue
        for (const selector of rule.selectors.split(',')) {
          const name = selector.trim()
          // Only what one class or id says by itself; what stands in a context may be shown in another.
          if (hidden.size < maximumSelectors && /^[a-z0-9]*[.#][\w-]+$/i.test(name))
            hidden.add(name.slice(name.search(/[.#]/)))
        }
      }
    },
    hides(name, attributes) {
      if (neverHidden.has(name)) return false
      if ('hidden' in attributes || attributes['aria-hidden'] === 'true') return true
      if (attributes.style !== undefined && hidesBy(attributes.style)) return true
      if (hidden.size === 0) return false
      if (attributes.id !== undefined && hidden.has(`#${attributes.id}`)) return true
      return attributes.class?.split(/\s+/).some(one => hidden.has(`.${one}`)) ?? false
    },
  }
}

/** The rules outside of `@media` and its kind, which hold on paper or on other screens. */
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

/** None of the values looked for is longer, and a pattern is not let loose on what a stranger made long. */
const longestValue = 64
const zero = /^[+-]?0*\.?0+(?:px|em|rem|%|pt|vh|vw)?$/
const farAway = /^-\d{3,}(?:\.\d+)?(?:px|em|rem|pt|%|vw|vh)$/

const hidingValues: Readonly<Record<string, (value: string) => boolean>> = {
  display: value => value === 'none',
  visibility: value => value === 'hidden' || value === 'collapse',
  opacity: value => zero.test(value),
  'font-size': value => zero.test(value),
  'text-indent': value => farAway.test(value),
  left: value => farAway.test(value),
  right: value => farAway.test(value),
  top: value => farAway.test(value),
  clip: value => /^rect\(\s*0(?:px)?[\s,]+0(?:px)?[\s,]+0(?:px)?[\s,]+0(?:px)?\s*\)$/.test(value),
  'clip-path': value => /^inset\(\s*(?:50|100)%\s*\)$/.test(value),
  color: value => value === 'transparent',
}

/** Whether declarations take a text out of sight. The size of a box alone does not: what overflows it is seen. */
function hidesBy(declarations: string): boolean {
  return declarations.split(';').some(declaration => {
    const colon = declaration.indexOf(':')
    const value = declaration
      .slice(colon + 1)
      .replace(/!\s*important/i, '')
      .trim()
      .toLowerCase()
    if (value.length > longestValue) return false
    return hidingValues[declaration.slice(0, colon).trim().toLowerCase()]?.(value) ?? false
  })
}
