/** One definition per figure: pages take labels, units and explanations from one table. */
import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { Glob } from 'bun'
import { type FigureName, figures, showFigure } from '../../src/dashboard/state/figures.ts'

const root = join(import.meta.dir, '../../src/dashboard')
const sources = await Promise.all(
  [...new Glob('{pages,parts}/*.tsx').scanSync(root)].map(async path => ({
    path,
    text: await Bun.file(join(root, path)).text(),
  })),
)
const names = Object.keys(figures) as FigureName[]
/** Names of columns and tiles as the sources write them. */
const written = sources.flatMap(({ path, text }) =>
  [...text.matchAll(/\bname(?:: |=)(?:'([^']+)'|"([^"]+)")/g)].map(([, single, double]) => ({
    path,
    name: single ?? double ?? '',
  })),
)

describe('figures', () => {
  test('have labels of their own, a tooltip and a unit that no other label contradicts', () => {
    expect(new Set(names.map(name => figures[name].label)).size).toBe(names.length)
    for (const name of names) {
      expect(figures[name].about.length).toBeGreaterThan(10)
      expect(showFigure(name, null)).toBe('–')
      expect(showFigure(name, 0.5)).not.toBe('')
    }
  })

  test('name the statistic of each latency', () => {
    for (const { label, about } of names.map(name => figures[name]))
      if (/latency/i.test(label)) expect(`${label}: ${about}`).toMatch(/\(p50\)|\(p95\)|\(mean\)|this request/)
  })

  test('show quality on one scale from 0 to 1', () => {
    expect([0, 0.625, 1].map(value => showFigure('quality', value))).toEqual(['0.00', '0.63', '1.00'])
  })

  test('are named by the table only: no page writes their labels', () => {
    const labels = new Set<string>(names.map(name => figures[name].label))
    expect(written.length).toBeGreaterThan(50)
    expect(written.filter(({ name }) => labels.has(name))).toEqual([])
  })

  test('have no second name: no page names a latency, a quality or a success rate of its own', () => {
    expect(written.filter(({ name }) => /latency|quality|success|first token|p50|p95/i.test(name))).toEqual([])
  })

  test('appear on a page each', () => {
    const text = sources.map(source => source.text).join('\n')
    const unused = names.filter(name => !new RegExp(`['".]${name}\\b`).test(text))
    expect(unused).toEqual([])
  })
})
