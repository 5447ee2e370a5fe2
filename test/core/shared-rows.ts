/** Rows of a labelled set that stands beside the checkout, null where it is not there: said in one line, never silent. */
export async function sharedRows(name: string): Promise<Record<string, unknown>[] | null> {
  const file = Bun.file(new URL(`../../../shared/data/${name}/data.jsonl`, import.meta.url))
  if (!(await file.exists())) {
    report(`not run: ../shared/data/${name} is absent`)
    return null
  }
  return (await file.text())
    .trim()
    .split('\n')
    .map(line => JSON.parse(line) as Record<string, unknown>)
}

/** One line for whoever reads the test run. */
export function report(line: string): void {
  process.stdout.write(`${line}\n`)
}
