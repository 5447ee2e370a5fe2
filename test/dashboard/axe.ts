/** Accessibility of the shown page, by axe. */
import { readFileSync } from 'node:fs'
import type { Visitor } from './browser.ts'

const axe = readFileSync(Bun.resolveSync('axe-core/axe.min.js', import.meta.dir), 'utf8')

type AxeResult = {
  readonly violations: readonly {
    readonly id: string
    readonly impact: string
    readonly nodes: readonly { readonly target: readonly string[] }[]
  }[]
}

/** Returns axe violations and horizontal overflow of the shown page. `rules` are further options of axe; empty = all rules. */
export async function findViolations({ page }: Visitor, name: string, rules = ''): Promise<string[]> {
  // Once per document: the source is half a megabyte.
  if (await page.evaluate<boolean>('typeof axe === "undefined"')) await page.evaluate(`${axe}; undefined`)
  const { violations } = await page.evaluate<AxeResult>(`axe.run({ resultTypes: ['violations'], ${rules} })`)
  const excess = Number(await page.evaluate('document.documentElement.scrollWidth - innerWidth'))
  return [
    ...violations.map(({ id, impact, nodes }) => `${name}: ${id} (${impact}) at ${nodes[0]?.target.join(' ')}`),
    ...(excess > 0 ? [`${name} is ${excess} px wider than the screen`] : []),
  ]
}
