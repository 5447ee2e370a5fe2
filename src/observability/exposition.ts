import type { Family, Labels } from './instruments.ts'

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
