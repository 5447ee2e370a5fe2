export const outputCapLimits = ['model_limit', 'default', 'account_remaining'] as const
/**
 * The origin of the gateway's output cap: the limit of the model, `DEFAULT_MAX_OUTPUT_TOKENS`, or the request's share
 * of the daily limit.
 */
type OutputCapLimit = (typeof outputCapLimits)[number]

export type OutputCap = { readonly tokens: number; readonly limitedBy: OutputCapLimit }

/** All values are output tokens per choice. */
type OutputCaps = {
  /** Cap requested by the client; null = none. */
  readonly client: number | null
  /** Default if the client requests no cap. */
  readonly usual: number
  /** Output limit of the model that the reservation was sized for. */
  readonly plannedLimit: number
  /** Reserved output tokens. */
  readonly granted: number
  /** Output limit of the model being called. */
  readonly modelLimit: number
}

/** Returns the output cap that the gateway sets and its origin; null if the client's own cap applies. */
export function gatewayOutputCap({ client, usual, plannedLimit, granted, modelLimit }: OutputCaps): OutputCap | null {
  const tokens = Math.min(granted, modelLimit)
  if (client !== null && tokens >= client) return null
  const wanted = client ?? usual
  if (tokens < granted) return { tokens, limitedBy: 'model_limit' }
  if (granted < Math.min(wanted, plannedLimit)) return { tokens, limitedBy: 'account_remaining' }
  return { tokens, limitedBy: wanted > plannedLimit ? 'model_limit' : 'default' }
}
