/** Scales and paths of charts: pure functions of their values. */

export const height = 170
export const step = 20
export const barWidth = 13

/** Returns a line between days, interrupted at days without a value; a single day is a dash. */
export function toPath(values: readonly (number | null)[], top: number): string {
  return values
    .map((value, day) => {
      if (value === null) return ''
      const [x, y] = [day * step + step / 2, height - (value / top) * height]
      const isAlone = (values[day - 1] ?? null) === null && (values[day + 1] ?? null) === null
      if (isAlone) return `M${x - barWidth / 2} ${y}h${barWidth}`
      return `${(values[day - 1] ?? null) === null ? 'M' : 'L'}${x} ${y}`
    })
    .join('')
}

/** Returns the areas between two courses over runs of days with values; each run has the full width of its days. */
export function toArea(upper: readonly (number | null)[], lower: readonly number[], top: number): string {
  const y = (value: number) => Math.round((height - (value / top) * height) * 10) / 10
  const isRunEnd = (day: number) => (upper[day] ?? null) === null
  return upper
    .map((value, day) => {
      if (value === null || !isRunEnd(day - 1)) return ''
      const end = upper.findIndex((_, at) => at > day && isRunEnd(at))
      const run = upper
        .slice(day, end === -1 ? undefined : end)
        .map((of, at) => [of ?? 0, lower[day + at] ?? 0] as const)
      const edge = (which: 0 | 1) =>
        run.flatMap((of, at) => {
          const [x, height] = [(day + at) * step, y(of[which])]
          const inner = [`${x + step / 2} ${height}`]
          return [
            ...(at === 0 ? [`${x} ${height}`] : []),
            ...inner,
            ...(at === run.length - 1 ? [`${x + step} ${height}`] : []),
          ]
        })
      return `M${[...edge(0), ...edge(1).toReversed()].join('L')}z`
    })
    .join('')
}

/** Returns what is left of `limit` after each day's cost, never below 0. */
export function toRemaining(costs: readonly number[], limit: number): number[] {
  let spent = 0
  return costs.map(cost => {
    spent += cost
    return Math.max(0, limit - spent)
  })
}

const steps = [1, 2, 3, 4, 6, 8, 10] as const

/** Returns the next round number whose half is round too. */
export function roundedTop(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value))
  return (steps.find(step => step * power >= value) ?? 10) * power
}

/** Returns the place of a value between the least and the highest of `values` by factors, 0–1; they differ by factors. */
export function logShare(value: number, values: readonly number[]): number {
  const above = values.filter(other => other > 0)
  const [least, most] = [Math.min(...above), Math.max(...above)]
  if (value <= 0 || above.length === 0) return 0
  return most === least ? 1 : Math.log(value / least) / Math.log(most / least)
}
