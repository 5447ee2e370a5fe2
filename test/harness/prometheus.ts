/** Parses the Prometheus text format as strictly as Prometheus and `promtool check metrics`. */

export type Scraped = {
  readonly types: ReadonlyMap<string, string>
  /** Values by series as in a query: `name{label="value"}`, labels in alphabetical order. */
  readonly values: ReadonlyMap<string, number>
  /** Returns the sum over all series of a name with these labels. */
  sum(name: string, labels?: Readonly<Record<string, string>>): number
}

type Line = { readonly name: string; readonly labels: Readonly<Record<string, string>>; readonly value: number }

const sampleShape = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (-?(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?|Inf)|NaN|\+Inf)$/
const labelShape = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(,|$)/y

/** Throws with the line if Prometheus would reject the text. */
export function scrape(text: string): Scraped {
  if (!text.endsWith('\n')) throw new Error('the last line must end')
  const types = new Map<string, string>()
  const helped = new Set<string>()
  const values = new Map<string, number>()
  const lines: Line[] = []
  let family = ''
  for (const line of text.slice(0, -1).split('\n')) {
    const [, keyword, name = '', rest = ''] = /^# (HELP|TYPE) (\S+) (.*)$/.exec(line) ?? []
    if (keyword === 'HELP') {
      if (helped.has(name)) throw new Error(`helped twice: ${line}`)
      helped.add(name)
      continue
    }
    if (keyword === 'TYPE') {
      if (types.has(name) || !/^(counter|gauge|histogram)$/.test(rest)) throw new Error(`wrong type: ${line}`)
      if (rest === 'counter' && !name.endsWith('_total')) throw new Error(`a counter ends in _total: ${line}`)
      types.set(name, rest)
      family = name
      continue
    }
    const sample = parsed(line)
    const suffix = sample.name.slice(family.length)
    const expected = types.get(family) === 'histogram' ? ['_bucket', '_sum', '_count'] : ['']
    if (!sample.name.startsWith(family) || !expected.includes(suffix)) throw new Error(`outside its family: ${line}`)
    const series = getSeries(sample.name, sample.labels)
    if (values.has(series)) throw new Error(`twice: ${line}`)
    values.set(series, sample.value)
    lines.push(sample)
  }
  for (const [name, type] of types) {
    if (!helped.has(name)) throw new Error(`${name} has no help`)
    if (type === 'histogram') checkBuckets(name, lines)
  }
  return {
    types,
    values,
    sum: (name, labels = {}) =>
      lines
        .filter(
          line => line.name === name && Object.entries(labels).every(([key, value]) => line.labels[key] === value),
        )
        .reduce((sum, { value }) => sum + value, 0),
  }
}

function parsed(line: string): Line {
  const [, name = '', inside = '', value = ''] = sampleShape.exec(line) ?? []
  if (name === '') throw new Error(`no sample: ${line}`)
  const labels: Record<string, string> = {}
  labelShape.lastIndex = 0
  while (labelShape.lastIndex < inside.length) {
    const [, key = '', text = ''] = labelShape.exec(inside) ?? []
    if (key === '' || key in labels) throw new Error(`wrong labels: ${line}`)
    labels[key] = text.replace(/\\(.)/g, (_, mark) => (mark === 'n' ? '\n' : mark))
  }
  return { name, labels, value: value === '+Inf' ? Number.POSITIVE_INFINITY : Number(value) }
}

function getSeries(name: string, labels: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(labels).sort(([text], [other]) => (text < other ? -1 : 1))
  return pairs.length === 0 ? name : `${name}{${pairs.map(([key, value]) => `${key}=${JSON.stringify(value)}`).join()}}`
}

/** Checks that buckets increase and that the last is `+Inf` and equals the count. */
function checkBuckets(name: string, lines: readonly Line[]): void {
  const withoutBound = ({ labels: { le: _, ...labels } }: Line) => getSeries(name, labels)
  const buckets = Map.groupBy(
    lines.filter(line => line.name === `${name}_bucket`),
    withoutBound,
  )
  for (const [series, all] of buckets) {
    const bounds = all.map(({ labels: { le = '' } }) => (le === '+Inf' ? Number.POSITIVE_INFINITY : Number(le)))
    const rising = (figures: readonly number[], least: number) =>
      figures.every((figure, index) => index === 0 || figure - (figures[index - 1] ?? 0) >= least)
    if (!rising(bounds, Number.MIN_VALUE) || bounds.at(-1) !== Number.POSITIVE_INFINITY)
      throw new Error(`${series}: wrong bounds`)
    const counts = all.map(({ value }) => value)
    const count = lines.find(line => line.name === `${name}_count` && withoutBound(line) === series)?.value
    if (!rising(counts, 0) || counts.at(-1) !== count) throw new Error(`${series}: wrong counts`)
  }
}
