/** What the operator changes about a model while the gateway runs, on top of the configuration. */
export type ModelSwitch = {
  /** `provider/model`. */
  readonly model: string
  readonly enabled: boolean
  /** Its hosts in the order of calls; null = as configured. */
  readonly hosts: readonly HostChoice[] | null
}

/** `weight`: share of the requests that begin at this host; null = the first one that is listed begins all. */
export type HostChoice = { readonly host: string; readonly weight: number | null }
