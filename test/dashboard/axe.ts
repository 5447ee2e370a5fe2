/** Accessibility of the page that a visitor sees, by axe. */
import { readFileSync } from 'node:fs'
import type { Visitor } from './browser.ts'

/** Waits until the page has loaded everything; returns the milliseconds since its navigation. */
export const settled = `new Promise(resolve => {
  const look = () =>
    document.querySelector('.skeleton') === null ? resolve(Math.round(performance.now())) : requestAnimationFrame(look)
  look()
})`

const axe = readFileSync(Bun.resolveSync('axe-core/axe.min.js', import.meta.dir), 'utf8')

/** Options of axe for rules that depend on size and colors; the structure is the same in all of them. */
export const appearanceOnly = 'runOnly: ["color-contrast", "region", "scrollable-region-focusable"]'

type AxeResult = {
  readonly violations: readonly {
    readonly id: string
    readonly impact: string
    readonly nodes: readonly { readonly target: readonly string[] }[]
  }[]
}

/** Returns the violations on the page, and its excess width. `rules` are further options of axe. */
export async function axeProblems({ page }: Visitor, name: string, rules: string): Promise<string[]> {
  // Once per document: the source is half a megabyte.
  if (await page.evaluate<boolean>('typeof axe === "undefined"')) await page.evaluate(`${axe}; undefined`)
  const { violations } = await page.evaluate<AxeResult>(`axe.run({ resultTypes: ['violations'], ${rules} })`)
  const excess = Number(await page.evaluate('document.documentElement.scrollWidth - innerWidth'))
  return [
    ...violations.map(({ id, impact, nodes }) => `${name}: ${id} (${impact}) at ${nodes[0]?.target.join(' ')}`),
    ...(excess > 0 ? [`${name} is ${excess} px wider than the screen`] : []),
  ]
}
