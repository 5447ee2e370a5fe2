/** Constraints as one line, as the header, forms and commands have them: `zdr, region=eu|us, providers=azure`. */

export const wordPattern = '^[A-Za-z0-9][A-Za-z0-9_./:-]{0,63}$'
const wordShape = new RegExp(wordPattern)

/** Constraints as bodies of the API have them. */
type Constraints = {
  zdr?: boolean
  no_training?: boolean
  region?: string | string[]
  providers?: string | string[]
  ignore_providers?: string | string[]
}

/** An example of the form, for errors and hints. */
export const constraintsExample = 'zdr, no_training, region=eu, providers=azure|openai'

/** Returns the constraints of a line; null = it has another form, or a name twice: one of its lists would be lost. */
export function parseConstraints(text: string): Constraints | null {
  const row: Constraints = {}
  for (const part of text.split(',')) {
    const [, name, values] = /^\s*([a-z_]+)\s*(?:=\s*([^=]*?)\s*)?$/.exec(part) ?? []
    const list = values?.split('|').map(value => value.trim())
    if ((name === 'zdr' || name === 'no_training') && list === undefined) row[name] = true
    else if ((name !== 'region' && name !== 'providers' && name !== 'ignore_providers') || name in row) return null
    else if (list?.every(value => wordShape.test(value)) === true) row[name] = list
    else return null
  }
  return row
}

const names = ['zdr', 'no_training', 'region', 'providers', 'ignore_providers'] as const

/** Returns constraints as a line; empty = none. */
export function formatConstraints(row: Readonly<Constraints> | null): string {
  const parts = names.flatMap(name => {
    const value = row?.[name]
    if (typeof value === 'boolean' || value === undefined) return value === true ? [name] : []
    return `${name}=${[value].flat().join('|')}`
  })
  return parts.join(', ')
}
