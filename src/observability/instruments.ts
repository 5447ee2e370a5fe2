/**
 * Counters and histograms as plain numbers. Labels are closed sets, so a cell is found by multiplication and counting
 * costs one addition. Names and labels are added when metrics are read.
 */

export type Labels = Readonly<Record<string, string>>

/** All values of a dimension. An empty entry (`{}`) stands for "no such label". The first axis of an instrument may grow. */
export type Axis = readonly Labels[]

/** One metric, independent of the protocol. Values are since the start of the process. */
export type Family = { readonly name: string; readonly help: string } & (
  | { readonly kind: 'counter' | 'gauge'; readonly samples: readonly Sample[] }
  | { readonly kind: 'histogram'; readonly bounds: readonly number[]; readonly series: readonly Series[] }
)

export type Sample = { readonly labels: Labels; readonly value: number }

/** `counts` has one entry more than there are bounds, for values above the last; it is not cumulative. */
type Series = { readonly labels: Labels; readonly counts: readonly number[]; readonly sum: number }

type Description = {
  readonly name: string
  readonly help: string
  readonly axes: readonly Axis[]
  /** Also shows cells with 0: for small sets, so that a first event is visible as an increase. */
  readonly showsZeros?: boolean
}

type Counter = {
  /** Adds `amount` to the cell at these indices of the axes, in their order. */
  add(amount: number, first?: number, second?: number, third?: number, fourth?: number): void
  family(): Family
}

/** Creates a counter. `unit` is the amount that is shown as 1, so that integer amounts stay exact. */
export function createCounter({
  name,
  help,
  axes,
  unit = 1,
  showsZeros = false,
}: Description & { readonly unit?: number }): Counter {
  const [sizeNow, getPlace] = layout(axes)
  let cells = new Float64Array(sizeNow())
  return {
    add(amount, first = 0, second = 0, third = 0, fourth = 0) {
      if (amount === 0) return
      const place = getPlace(first, second, third, fourth)
      if (place >= cells.length) cells = grown(cells, sizeNow())
      cells[place] = (cells[place] ?? 0) + amount
    },
    family() {
      const all = getLabels(axes).map((labels, place) => ({ labels, value: (cells[place] ?? 0) / unit }))
      return { name, help, kind: 'counter', samples: showsZeros ? all : all.filter(({ value }) => value !== 0) }
    },
  }
}

type Histogram = {
  /** Counts one value at these indices of the axes. */
  observe(value: number, first?: number, second?: number): void
  family(): Family
}

/** Creates a histogram. `bounds` are inclusive upper bounds in ascending order. */
export function createHistogram({
  name,
  help,
  axes,
  bounds,
  showsZeros = false,
}: Description & { readonly bounds: readonly number[] }): Histogram {
  const [sizeNow, getPlace] = layout(axes)
  const width = bounds.length + 1
  let counts = new Float64Array(sizeNow() * width)
  let sums = new Float64Array(sizeNow())
  return {
    observe(value, first = 0, second = 0) {
      const place = getPlace(first, second, 0, 0)
      if (place >= sums.length) {
        counts = grown(counts, sizeNow() * width)
        sums = grown(sums, sizeNow())
      }
      let bucket = 0
      while (bucket < bounds.length && value > (bounds[bucket] ?? 0)) bucket++
      counts[place * width + bucket] = (counts[place * width + bucket] ?? 0) + 1
      sums[place] = (sums[place] ?? 0) + value
    },
    family() {
      const series = getLabels(axes).map((labels, place) => ({
        labels,
        counts: [...counts.subarray(place * width, (place + 1) * width)],
        sum: sums[place] ?? 0,
      }))
      const used = series.filter(sery => showsZeros || sery.counts.some(count => count > 0))
      return { name, help, kind: 'histogram', bounds, series: used }
    },
  }
}

function grown(cells: Float64Array, size: number): Float64Array<ArrayBuffer> {
  const larger = new Float64Array(size)
  larger.set(cells)
  return larger
}

/** Returns the functions that count the cells and find one. At most four axes. The first one has no effect on places. */
function layout(axes: readonly Axis[]) {
  const [, second = 1, third = 1, fourth = 1] = axes.map(axis => axis.length)
  const sizeNow = () => axes.reduce((product, axis) => product * axis.length, 1)
  const getPlace = (a: number, b: number, c: number, d: number) => ((a * second + b) * third + c) * fourth + d
  return [sizeNow, getPlace] as const
}

/** Returns the labels of every cell, in the order of the cells. */
function getLabels(axes: readonly Axis[]): readonly Labels[] {
  return axes.reduce<readonly Labels[]>(
    (before, axis) => before.flatMap(labels => axis.map(more => ({ ...labels, ...more }))),
    [{}],
  )
}

/** Content type of the exposition. */
export const expositionType = 'text/plain; version=0.0.4; charset=utf-8'

/** Returns metrics in the Prometheus text format. */
export function exposition(families: readonly Family[]): string {
  return families.map(getText).join('')
}

/** Merges the metrics of several workers into one list with a label for the worker. */
export function mergeWorkers(
  all: readonly { readonly worker: number; readonly families: readonly Family[] }[],
): Family[] {
  const labelled = all.flatMap(({ worker, families }) =>
    families.map(family => withLabels(family, { worker: String(worker) })),
  )
  return [...Map.groupBy(labelled, ({ name }) => name).values()].flatMap(([first, ...others]) =>
    first === undefined ? [] : [others.reduce(joined, first)],
  )
}

function withLabels(family: Family, more: Labels): Family {
  return family.kind === 'histogram'
    ? { ...family, series: family.series.map(sery => ({ ...sery, labels: { ...sery.labels, ...more } })) }
    : { ...family, samples: family.samples.map(sample => ({ ...sample, labels: { ...sample.labels, ...more } })) }
}

function joined(family: Family, other: Family): Family {
  if (family.kind === 'histogram')
    return other.kind === 'histogram' ? { ...family, series: [...family.series, ...other.series] } : family
  return other.kind === 'histogram' ? family : { ...family, samples: [...family.samples, ...other.samples] }
}

function getText(family: Family): string {
  const { name, help, kind } = family
  const lines = [`# HELP ${name} ${help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')}`, `# TYPE ${name} ${kind}`]
  const line = (suffix: string, labels: Labels, value: number) =>
    lines.push(`${name}${suffix}${bracketed(labels)} ${value}`)
  if (family.kind !== 'histogram') {
    for (const { labels, value } of family.samples) line('', labels, value)
    return `${lines.join('\n')}\n`
  }
  for (const { labels, counts, sum } of family.series) {
    let count = 0
    for (const [index, bound] of [...family.bounds, '+Inf'].entries()) {
      count += counts[index] ?? 0
      line('_bucket', { ...labels, le: String(bound) }, count)
    }
    line('_sum', labels, sum)
    line('_count', labels, count)
  }
  return `${lines.join('\n')}\n`
}

function bracketed(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`)
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`
}

function escaped(value: string): string {
  return value.toWellFormed().replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}
