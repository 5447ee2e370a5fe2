/** An inline image. `kind` is its media type in lower case, possibly empty. */
type InlineImage = { readonly kind: string; readonly isBase64: boolean; readonly data: string }

/** Parses a `data:` image URL; null for others. Only searches the beginning, since images are long. */
export function inlineImage(url: string): InlineImage | null {
  const comma = url.slice(0, 256).indexOf(',')
  if (comma < 0 || url.slice(0, 5).toLowerCase() !== 'data:') return null
  const fields = url.slice(5, comma).toLowerCase().split(';')
  const [kind = '', ...attributes] = fields.map(field => field.trim())
  return { kind, isBase64: attributes.at(-1) === 'base64', data: url.slice(comma + 1) }
}
