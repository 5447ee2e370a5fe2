/** The flow of requests from query types through models to outcomes, and its layout. */
import type { ShownUsage } from '../../console/usage/schemas.ts'
import { type Filters, failedOnly } from './filters.ts'
import { humanize } from './format.ts'
import { formatModelName, type Series } from './usage-series.ts'

type FlowNode = {
  readonly id: string
  readonly name: string
  readonly tone: Series['tone'] | 'good'
  /** Filters of its requests; null = no filter names them. */
  readonly filters: Filters | null
}
type FlowLink = { readonly from: string; readonly to: string; readonly value: number }
export type Flow = { readonly columns: readonly (readonly FlowNode[])[]; readonly links: readonly FlowLink[] }

const outcomes = [
  { id: 'completed', name: 'Completed', tone: 'good', filters: { status: 'completed' } },
  { id: 'failed', name: 'Failed or blocked', tone: 'bad', filters: failedOnly },
  { id: 'closed', name: 'Client disconnected', tone: 'warn', filters: { status: 'client_closed' } },
] as const satisfies readonly FlowNode[]

/** Returns the flow of usage by query type, split by model. Nodes without requests are left out. */
export function toFlow({ data, series, others }: ShownUsage): Flow {
  const types = data.flatMap(row => ('query_type' in row ? [row.query_type] : []))
  const models = [
    ...series.flatMap((part, at) =>
      'model' in part ? [{ part, name: formatModelName(part.model), model: part.model, tone: `s${at}` as const }] : [],
    ),
    ...(others === null ? [] : [{ part: others, name: 'Other models', model: null, tone: 'rest' as const }]),
  ]
  const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0)
  const links = models.flatMap(({ part, name }) => {
    const [requests, completed, failed] = [sum(part.requests), sum(part.completed), sum(part.failed)]
    const counts = { completed, failed, closed: requests - completed - failed }
    return [
      ...types.map((type, at) => ({ from: `type ${type}`, to: name, value: part.requests[at] ?? 0 })),
      ...outcomes.map(({ id }) => ({ from: name, to: id, value: counts[id] })),
    ]
  })
  const columns: FlowNode[][] = [
    types.map(type => ({
      id: `type ${type}`,
      name: type === null ? 'Embedding' : humanize(type),
      tone: 'rest',
      filters: type === null ? null : { query_type: type },
    })),
    models.map(({ name, model, tone }) => ({ id: name, name, tone, filters: model === null ? null : { model } })),
    [...outcomes],
  ]
  const used = links.filter(({ value }) => value > 0)
  const countRequests = ({ id }: FlowNode) =>
    Math.max(...[used.filter(link => link.from === id), used.filter(link => link.to === id)].map(addUp))
  return {
    columns: columns.map((nodes, at) => {
      const shown = nodes.filter(node => countRequests(node) > 0)
      return at === 2 ? shown : shown.toSorted((left, right) => countRequests(right) - countRequests(left))
    }),
    links: used,
  }
}

const addUp = (links: readonly FlowLink[]) => links.reduce((sum, { value }) => sum + value, 0)

type PlacedNode = FlowNode & {
  readonly column: number
  readonly value: number
  readonly y: number
  readonly height: number
}
/** A link as two vertical edges of one height. */
type PlacedLink = {
  readonly source: PlacedNode
  readonly target: PlacedNode
  readonly value: number
  readonly fromY: number
  readonly toY: number
  readonly height: number
}

/**
 * Returns the places of nodes and links. All heights have one scale, `fullHeight` for all requests; every node keeps at
 * least `leastSpace`, so that its label is readable.
 */
export function layoutFlow(
  { columns, links }: Flow,
  { fullHeight, leastSpace }: { readonly fullHeight: number; readonly leastSpace: number },
): { readonly nodes: readonly PlacedNode[]; readonly links: readonly PlacedLink[]; readonly height: number } {
  const total = Math.max(1, addUp(links.filter(({ to }) => columns[1]?.some(({ id }) => id === to))))
  const placed = new Map<string, PlacedNode>()
  let height = 0
  for (const [column, nodes] of columns.entries()) {
    let y = 0
    for (const node of nodes) {
      const value = addUp(links.filter(link => (column === 0 ? link.from : link.to) === node.id))
      placed.set(node.id, { ...node, column, value, y, height: (value / total) * fullHeight })
      y += Math.max(leastSpace, (value / total) * fullHeight + leastSpace / 4)
    }
    height = Math.max(height, y)
  }
  const places = new Map([...placed.keys()].map((id, at) => [id, at]))
  const place = (id: string) => places.get(id) ?? 0
  const out = new Map<string, number>()
  const into = new Map<string, number>()
  const ordered = links.toSorted(
    (left, right) => place(left.from) - place(right.from) || place(left.to) - place(right.to),
  )
  const drawn = ordered.flatMap(({ from, to, value }): PlacedLink[] => {
    const [source, target] = [placed.get(from), placed.get(to)]
    if (source === undefined || target === undefined) return []
    const thick = (value / total) * fullHeight
    const [fromY, toY] = [out.get(from) ?? source.y, into.get(to) ?? target.y]
    out.set(from, fromY + thick)
    into.set(to, toY + thick)
    return [{ source, target, value, fromY, toY, height: thick }]
  })
  return { nodes: [...placed.values()], links: drawn, height }
}
