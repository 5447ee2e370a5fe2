/** Text forms in which published tables are kept: CSV by RFC 4180, and lists of texts as Python prints them. */

/** Returns the rows as objects by the names in the first line. Numbers and booleans as pandas writes them are converted. */
export function parseCsv(text: string): Record<string, unknown>[] {
  const [names = [], ...rows] = splitCsv(text)
  return rows
    .filter(({ length }) => length === names.length)
    .map(row => Object.fromEntries(names.map((name, index) => [name, convert(row[index] ?? '')])))
}

function convert(cell: string): unknown {
  if (cell === 'True' || cell === 'False') return cell === 'True'
  return /^-?\d+(\.\d+)?(e[+-]?\d+)?$/i.test(cell) ? Number(cell) : cell
}

const plainCell = /[^,\r\n]*/y

function splitCsv(text: string): string[][] {
  const rows: string[][] = []
  let row: string[] = []
  let at = 0
  while (at < text.length) {
    let cell = ''
    if (text[at] === '"') {
      let end = text.indexOf('"', at + 1)
      while (end !== -1 && text[end + 1] === '"') end = text.indexOf('"', end + 2)
      if (end === -1) throw new Error('A quoted CSV cell has no end.')
      cell = text.slice(at + 1, end).replaceAll('""', '"')
      at = end + 1
    } else {
      plainCell.lastIndex = at
      cell = plainCell.exec(text)?.[0] ?? ''
      at = plainCell.lastIndex
    }
    row.push(cell)
    if (text[at] === ',') {
      at++
      if (at < text.length) continue
      row.push('')
    }
    rows.push(row)
    row = []
    if (text[at] === '\r') at++
    if (text[at] === '\n') at++
  }
  return rows
}

const escapes: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r' }

/** Returns the texts of a Python list such as `['a', "b"]`, which RouterBench keeps as a prompt; null = the text is not such a list. */
export function parsePythonTexts(text: string): string[] | null {
  if (!/^\[\s*['"].*['"]\s*,?\s*\]$/s.test(text)) return null
  const texts = [...text.matchAll(/'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"/gs)].map(
    ([, single, double]) => single ?? double ?? '',
  )
  return texts.map(item =>
    item.replace(/\\(x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8}|.)/gis, (_, code: string) =>
      code.length > 1 ? String.fromCodePoint(Number.parseInt(code.slice(1), 16)) : (escapes[code] ?? code),
    ),
  )
}
