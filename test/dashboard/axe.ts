/** Accessibility of a page in a browser, by axe. */
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

/** Waits until the page has loaded everything; returns the milliseconds since its navigation. */
export const settled = `new Promise(resolve => {
  const look = () =>
    document.querySelector('.skeleton') === null ? resolve(Math.round(performance.now())) : requestAnimationFrame(look)
  look()
})`

/** Returns the violations of a page, and whether it scrolls horizontally. `rules` are further options of axe. */
export async function violations({ page }: Visitor, name: string, rules = ''): Promise<string[]> {
  // Once per document: the source is half a megabyte.
  if (await page.evaluate<boolean>('typeof axe === "undefined"')) await page.evaluate(`${axe}; undefined`)
  const { violations: found } = await page.evaluate<AxeResult>(`axe.run({ resultTypes: ['violations'], ${rules} })`)
  const excess = Number(await page.evaluate('document.documentElement.scrollWidth - innerWidth'))
  return [
    ...found.map(({ id, impact, nodes }) => `${name}: ${id} (${impact}) at ${nodes[0]?.target.join(' ')}`),
    ...(excess > 0 ? [`${name} is ${excess} px wider than the screen`] : []),
  ]
}
