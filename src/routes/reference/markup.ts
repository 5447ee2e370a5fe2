/** HTML from templates in which every value is text unless it is markup already. */

export type Markup = { readonly text: string }

type Value = string | number | Markup | readonly Markup[]

/** A template whose values are escaped; markup and lists of it go in as they are. */
export function html(pieces: TemplateStringsArray, ...values: readonly Value[]): Markup {
  return raw(pieces.map((piece, index) => piece + (index < values.length ? written(values[index] ?? '') : '')).join(''))
}

/** Text that is HTML already. */
export function raw(text: string): Markup {
  return { text }
}

/** The little Markdown of descriptions: `code` and **strong**. */
export function markdown(text: string): Markup {
  return raw(
    escaped(text)
      .replaceAll(/`([^`]+)`/g, '<code>$1</code>')
      .replaceAll(/\*\*([^*]+)\*\*/g, '<strong>$1</strong>'),
  )
}

function written(value: Value): string {
  if (typeof value === 'string') return escaped(value)
  if (typeof value === 'number') return String(value)
  return 'text' in value ? value.text : value.map(({ text }) => text).join('')
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

function escaped(text: string): string {
  return text.replaceAll(/[&<>"']/g, character => entities[character] ?? character)
}
