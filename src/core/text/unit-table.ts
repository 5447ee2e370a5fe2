/**
 * Fills a table with one entry for each of its indexes, here mostly the 65,536 UTF-16 units. `TypedArray.from` takes
 * seven times as long, and a start fills several tables.
 */
export function filledTable<Table extends Uint8Array | Uint16Array | Uint32Array | Int32Array>(
  table: Table,
  getEntry: (index: number) => number,
): Table {
  for (let index = 0; index < table.length; index++) table[index] = getEntry(index)
  return table
}

/** UTF-16 units. */
export const unitCount = 65_536
