/** Timeouts of upstream calls in milliseconds, one for each phase in which an upstream can delay a response. */
export type Deadlines = {
  readonly connectMs: number
  readonly firstByteMs: number
  readonly silenceMs: number
  readonly firstContentMs: number
  /** First content of requests with high reasoning effort. */
  readonly firstContentReasoningMs: number
  readonly totalMs: number
}

/**
 * Deadlines of the gateway's own work in milliseconds: its stores, its threads, and the helpers that a client waits for.
 * `MINIMUM_DEADLINE_MS` lengthens all of them.
 */
export const usualDeadlines = {
  /** A query to Postgres. Deadlines that a query states change by the same factor. */
  postgresMs: 1_000,
  /** The embedded database always answers, but late when the machine is busy. */
  embeddedDatabaseMs: 10_000,
  /** A Redis command, and a connection to Redis. */
  redisMs: 250,
  /** An admission or a settlement: longer than `answerMs` of limits/constants.ts. */
  limitsMs: 1_500,
  /** The wait of a request for its start in a busy process. */
  startMs: 500,
  /** A worker's figures for one scrape. */
  workerFiguresMs: 1_000,
  /** The first connection of a command to Redis or a mail server. */
  commandConnectMs: 15_000,
  tokenizerMs: 5_000,
  /** A provider's count of input tokens. */
  tokenCountMs: 2_000,
  /** A rewrite by the operator's model. */
  rewriteMs: 2_500,
  /** The model list of a local server. */
  discoveryMs: 2_000,
  /** All search back ends together. */
  searchMs: 2_500,
  /** One page with its redirects. Rounded up to the failure step: 6 s. */
  pageMs: 5_900,
  pageConnectMs: 2_000,
  pageFirstByteMs: 3_000,
  pageParsingMs: 1_500,
  /** The start of a parser thread, which loads its libraries. */
  parserStartMs: 2_000,
  nameResolutionMs: 2_000,
  /** The connection and greeting of a mail server. */
  mailOpeningMs: 5_000,
  /** A call to the identity provider. */
  identityProviderMs: 5_000,
  /** A call to Stripe. */
  paymentMs: 8_000,
}

export type ServiceDeadlines = { readonly [Name in keyof typeof usualDeadlines]: number }

/** Returns the usual deadlines, none of them shorter than `minimumMs`. */
export function deadlinesOfAtLeast(minimumMs: number): ServiceDeadlines {
  const longer = { ...usualDeadlines }
  for (const name of Object.keys(longer) as (keyof ServiceDeadlines)[]) longer[name] = Math.max(longer[name], minimumMs)
  return longer
}
