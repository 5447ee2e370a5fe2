export const outputCapLimits = ['model_limit', 'default', 'account_remaining'] as const
/**
 * What set the gateway's own output cap: the limit of the model, `DEFAULT_MAX_OUTPUT_TOKENS`, or the share of the account's
 * day that the request may have.
 */
export type OutputCapLimit = (typeof outputCapLimits)[number]

export type OutputCap = { readonly tokens: number; readonly limitedBy: OutputCapLimit }

/** All in output tokens of one choice. */
export type OutputCaps = {
  /** What the client asked for; null = no cap. */
  readonly client: number | null
  /** Taken where the client asks for none. */
  readonly usual: number
  /** Of the model that the reservation was taken for. */
  readonly plannedLimit: number
  /** What was reserved. */
  readonly granted: number
  /** Of the model that is asked. */
  readonly modelLimit: number
}

/** Returns the cap that the gateway sets on an answer, and what set it; null where the client's own cap is in force. */
export function gatewayOutputCap({ client, usual, plannedLimit, granted, modelLimit }: OutputCaps): OutputCap | null {
  const tokens = Math.min(granted, modelLimit)
  if (client !== null && tokens >= client) return null
  const wanted = client ?? usual
  if (tokens < granted) return { tokens, limitedBy: 'model_limit' }
  if (granted < Math.min(wanted, plannedLimit)) return { tokens, limitedBy: 'account_remaining' }
  return { tokens, limitedBy: wanted > plannedLimit ? 'model_limit' : 'default' }
}
