/** Reads the report that `bun test` writes of one process: totals per file, and the tests that were skipped. */
import { existsSync, readFileSync } from 'node:fs'

export type FileResult = {
  readonly file: string
  readonly tests: number
  readonly failures: number
  readonly seconds: number
  /** Full titles. */
  readonly skipped: readonly string[]
}

/** Returns one result per file of the report; null where there is none, as after a crash. */
export function readReport(path: string): readonly FileResult[] | null {
  if (!existsSync(path)) return null
  const text = readFileSync(path, 'utf8')
  const skipped = new Map<string, string[]>()
  for (const [, attributes = ''] of text.matchAll(/<testcase ([^>]*[^/])>\s*<skipped\b/g)) {
    const file = attribute(attributes, 'file')
    const title = [attribute(attributes, 'classname'), attribute(attributes, 'name')].filter(part => part !== '')
    skipped.set(file, [...(skipped.get(file) ?? []), title.join(': ')])
  }
  // Two blanks before: the groups within a file are suites too, and stand deeper.
  return [...text.matchAll(/^ {2}<testsuite ([^>]*)>/gm)].map(([, attributes = '']) => {
    const file = attribute(attributes, 'file')
    const count = (name: string) => Number(attribute(attributes, name) || 0)
    return {
      file,
      tests: count('tests'),
      failures: count('failures') + count('errors'),
      seconds: count('time'),
      skipped: skipped.get(file) ?? [],
    }
  })
}

function attribute(attributes: string, name: string): string {
  const value = new RegExp(`\\b${name}="([^"]*)"`).exec(attributes)?.[1] ?? ''
  return value
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&apos;', "'")
    .replaceAll('&amp;', '&')
}
