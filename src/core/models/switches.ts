/** What the operator changes about models while the gateway runs, on top of the configuration. */

export const highestWeight = 1_000

export type HostChoice = {
  readonly host: string
  /** Share of the requests that begin at this host; absent = 1 if another host has one, else the first host begins all. */
  readonly weight?: number
}

export type ModelSwitch = {
  /** `provider/model`. */
  readonly model: string
  readonly enabled: boolean
  /** Null = as configured. */
  readonly hosts: readonly HostChoice[] | null
}

/** Switches by `provider/model`. */
export type SwitchesByModel = ReadonlyMap<string, ModelSwitch>

/** Reads `openai:2, azure`; null = it is no such list. */
export function parseHostChoices(text: string): HostChoice[] | null {
  const choices = text.split(',').map((item): HostChoice | null => {
    const [, host, weight] = /^\s*([^\s:,]+)(?::(\d{1,4}))?\s*$/.exec(item) ?? []
    if (host === undefined) return null
    return weight === undefined ? { host } : { host, weight: Number(weight) }
  })
  return choices.includes(null) ? null : choices.filter(choice => choice !== null)
}

/** Writes what `parseHostChoices` reads. */
export function formatHostChoices(choices: readonly HostChoice[]): string {
  return choices.map(({ host, weight }) => (weight === undefined ? host : `${host}:${weight}`)).join(', ')
}

/** Returns why hosts cannot be those of a model that is served by `served`, as the end of a sentence; null = they can. */
export function findHostsObstacle(choices: readonly HostChoice[], served: readonly string[]): string | null {
  const names = choices.map(({ host }) => host)
  if (names.some(name => !served.includes(name))) return `must be hosts of this model: ${served.join(', ')}`
  if (new Set(names).size < names.length) return 'must name each host once'
  if (choices.some(({ weight = 0 }) => weight > highestWeight)) return `must have weights up to ${highestWeight}`
  return choices.every(({ weight }) => weight === 0) ? 'must have a host whose weight is above 0' : null
}
