/**
 * CSV by RFC 4180, safe to open in a spreadsheet: a cell that would be read as a formula is prefixed with an
 * apostrophe, and every cell is quoted, so that no locale's separator can split it.
 */

export type Cell = string | number | boolean | null

/** Characters that begin a formula in some spreadsheet (including full-width forms), or that are skipped before one. */
const beginsFormula = /^[=+\-@\t\r\n＝＋－＠]/
/** A negative decimal is a number in every spreadsheet. */
const isDecimal = /^-\d+\.\d+$/

/**
 * Returns one line with its line break. Null is an empty cell. Numbers stay unchanged, since only text can be a
 * formula.
 */
export function csvLine(cells: readonly Cell[]): string {
  return `${cells.map(quoted).join(',')}\r\n`
}

function quoted(cell: Cell): string {
  if (typeof cell !== 'string') return `"${cell ?? ''}"`
  const text = beginsFormula.test(cell) && !isDecimal.test(cell) ? `'${cell}` : cell
  return `"${text.includes('"') ? text.replaceAll('"', '""') : text}"`
}

/** Returns the cells of each line of a CSV text. A quoted cell may hold separators, line breaks and doubled quotes. */
export function csvRows(text: string): string[][] {
  const rows: string[][] = []
  let row: string[] = []
  for (const [, quotedText, plain = '', end = ''] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^,\r\n]*))(,|\r?\n|$)/g)) {
    row.push(quotedText === undefined ? plain : quotedText.replaceAll('""', '"'))
    if (end === ',') continue
    if (row.length > 1 || row[0] !== '') rows.push(row)
    row = []
  }
  return rows
}
