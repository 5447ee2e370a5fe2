/** HTML templates that escape every value except markup. */

export type Markup = { readonly text: string }

type Value = string | number | Markup | readonly Markup[]

/** Template tag: escapes values; includes markup and lists of it unchanged. */
export function html(pieces: TemplateStringsArray, ...values: readonly Value[]): Markup {
  return raw(pieces.map((piece, index) => piece + (index < values.length ? written(values[index] ?? '') : '')).join(''))
}

/** Text that is already HTML. */
export function raw(text: string): Markup {
  return { text }
}

/** The Markdown subset of descriptions: `code` and **strong**. */
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
