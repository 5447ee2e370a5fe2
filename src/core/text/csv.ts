/**
 * CSV as RFC 4180 writes it, safe to open in a spreadsheet: a cell that would be read as a formula begins with an
 * apostrophe, and every cell is quoted, so that no separator of any locale can open a new one.
 */

export type Cell = string | number | boolean | null

/** Characters that begin a formula somewhere, the full-width forms included, or that a spreadsheet skips before one. */
const beginsFormula = /^[=+\-@\t\r\n＝＋－＠]/

/** One line with its end. Null is an empty cell; only text can be a formula, so numbers stay as they are. */
export function csvLine(cells: readonly Cell[]): string {
  return `${cells.map(quoted).join(',')}\r\n`
}

function quoted(cell: Cell): string {
  if (typeof cell !== 'string') return `"${cell ?? ''}"`
  const text = beginsFormula.test(cell) ? `'${cell}` : cell
  return `"${text.includes('"') ? text.replaceAll('"', '""') : text}"`
}
