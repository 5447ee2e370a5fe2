/** Reads the report of one `bun test` process: totals per file, and skipped and failed tests. */
import { existsSync, readFileSync } from 'node:fs'

export type FileResult = {
  readonly file: string
  readonly tests: number
  readonly failures: number
  readonly seconds: number
  /** Full titles. */
  readonly skipped: readonly string[]
  readonly failed: readonly string[]
}

/** Returns one result per file of the report; null if there is none, as after a crash. */
export function readReport(path: string): readonly FileResult[] | null {
  if (!existsSync(path)) return null
  const text = readFileSync(path, 'utf8')
  const marked = { skipped: new Map<string, string[]>(), failed: new Map<string, string[]>() }
  for (const [, attributes = '', mark] of text.matchAll(/<testcase ([^>]*[^/])>\s*<(skipped|failure|error)\b/g)) {
    const titles = mark === 'skipped' ? marked.skipped : marked.failed
    const file = attribute(attributes, 'file')
    const title = [attribute(attributes, 'classname'), attribute(attributes, 'name')].filter(part => part !== '')
    titles.set(file, [...(titles.get(file) ?? []), title.join(': ')])
  }
  // Indented by two blanks: groups within a file are suites too, with deeper indentation.
  return [...text.matchAll(/^ {2}<testsuite ([^>]*)>/gm)].map(([, attributes = '']) => {
    const file = attribute(attributes, 'file')
    const count = (name: string) => Number(attribute(attributes, name) || 0)
    return {
      file,
      tests: count('tests'),
      failures: count('failures') + count('errors'),
      seconds: count('time'),
      skipped: marked.skipped.get(file) ?? [],
      failed: marked.failed.get(file) ?? [],
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
