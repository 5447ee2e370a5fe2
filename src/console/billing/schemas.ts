import { type Static, type TSchema, Type } from '@sinclair/typebox'
import type { LineSums } from '../../core/billing/billing.ts'
import { all, fromNames, shownFields } from '../../core/usage/shown-fields.ts'
import { oneOf, strictObject } from '../../core/validation/validate.ts'
import {
  count,
  id,
  limitsShape,
  list,
  modelName,
  namedSchema,
  orNull,
  planName,
  text,
  time,
  usd,
} from '../../http/schemas.ts'

/**
 * An invoice by key, tag, member, model or dialect. The lines add up to the invoice exactly: late usage, which the ledger
 * has in another cycle than the invoice, is one line of its own.
 */

/** By tag: the values of one tag name, so that a request with several tags counts once. */
export const breakdownDimensions = ['key', 'tag', 'member', 'model', 'dialect'] as const
export type BreakdownDimension = (typeof breakdownDimensions)[number]

/**
 * In the order of the lines. `others` = all values beyond the bound; `untagged` = requests without the tag; `correction` =
 * late usage of the previous cycle that the invoice has, less usage of its own cycle that the ledger received after it.
 */
const breakdownKinds = ['usage', 'others', 'untagged', 'correction'] as const

export const billingShape = namedSchema('Billing', {
  plan: planName,
  version: count,
  plan_after_cycle: planName,
  plans: strictObject({ evaluation: limitsShape, usage: limitsShape }, { description: 'limits of each plan' }),
  cycle: orNull(strictObject({ starts_at: time, ends_at: time, cost_usd: usd })),
  collected_by: oneOf(['manual', 'stripe']),
  upgraded_by: { ...oneOf(['owner', 'operator']), description: 'who changes the account to plan `usage`' },
  payment_method: orNull(
    strictObject({
      kind: oneOf(['manual', 'stripe']),
      brand: orNull(text('visa')),
      last_four: orNull(text('4242')),
      added_at: orNull(time),
    }),
  ),
  /** Start of the grace period after a removed payment method or a declined invoice. */
  grace_ends_at: orNull(time),
  unpaid_since: orNull(time),
  payment_required: Type.Boolean({ description: 'chat responds 402 now' }),
  soft_cap: orNull(
    strictObject({
      monthly_usd: usd,
      used_usd: usd,
      used_share: Type.Number({ minimum: 0, description: 'share of the cap, 1 = all' }),
      warning: orNull(text('80% of the soft cap of 20 USD for this billing cycle is used')),
      period: oneOf(['billing_cycle', 'calendar_month']),
      starts_at: time,
      resets_at: time,
    }),
  ),
})

const invoice = {
  id: id('inv'),
  status: oneOf(['open', 'paid', 'unpaid', 'void']),
  period: strictObject({ starts_at: time, ends_at: time }),
  total_usd: usd,
  collected_usd: usd,
  issued_at: time,
  paid_at: orNull(time),
}
const invoiceShape = namedSchema('Invoice', invoice)
export const invoiceListShape = list(invoiceShape)

const sumFields = <Count extends TSchema, Cost extends TSchema>(whole: Count, cost: Cost) => ({
  requests: whole,
  input_tokens: whole,
  cached_input_tokens: whole,
  output_tokens: whole,
  reasoning_tokens: whole,
  cost_usd: cost,
})
const invoiceLineShape = namedSchema('InvoiceLine', { model: modelName, ...sumFields(count, usd) })
export const invoiceWithLinesShape = namedSchema('InvoiceWithLines', {
  ...invoice,
  lines: Type.Array(invoiceLineShape),
})

// Negative in a correction.
const sums = sumFields(
  Type.Integer({ examples: [12] }),
  Type.Number({ description: 'US dollars, to 1e-8', examples: [0.00042] }),
)

export const invoiceBreakdownShape = namedSchema('InvoiceBreakdown', {
  invoice_id: id('inv'),
  by: oneOf(breakdownDimensions),
  tag: orNull(text('team')),
  lines: Type.Array(
    strictObject({
      kind: {
        ...oneOf(breakdownKinds),
        description:
          '`others`: all values after the 1,000 most expensive ones; `untagged`: requests without the tag; `correction`: usage of the previous cycle that this invoice has because it arrived late, less usage of its own cycle that arrived after it and is on the next invoice',
      },
      id: {
        ...orNull(text('team=search')),
        description: 'key (the first of its rotations), tag, user, model or dialect; null = none',
      },
      name: { ...orNull(text('production')), description: 'name of the key, email of the user; otherwise null' },
      ...sums,
    }),
    { description: 'highest cost first; they add up to the invoice' },
  ),
})

/** Page of the payment processor to which the client sends the browser. */
export const pageShape = strictObject({ url: text('https://checkout.stripe.com/c/pay/cs_test_a1b2c3') })

/** Response to an event of the payment processor. */
export const receivedShape = strictObject({ received: Type.Literal(true) })

export type ShownBilling = Static<typeof billingShape>
export type ShownInvoice = Static<typeof invoiceShape>
export type ShownInvoiceLine = Static<typeof invoiceLineShape>
export type ShownBreakdown = Static<typeof invoiceBreakdownShape>

type BreakdownSums = Omit<LineSums, 'model'>
export type BreakdownLine = BreakdownSums & {
  readonly kind: (typeof breakdownKinds)[number]
  /** ID of a key (the first of its lineage), tag `name=value`, ID of a user, model, or dialect; null = none. */
  readonly id: string | null
  /** Name of the key, or email of the user. */
  readonly name: string | null
}

/** Sums of a line in the form of the API. */
export function shownSums({ amountMicrocents: costMicrocents, ...line }: BreakdownSums) {
  const { requests, inputTokens, cachedInputTokens, outputTokens, reasoningTokens } = line
  return shownFields({ requests, inputTokens, cachedInputTokens, outputTokens, reasoningTokens, costMicrocents })
}

/** Returns the lines of a breakdown, highest amount first. What `used` lacks of the invoice is the correction. */
export function toBreakdown(used: readonly BreakdownLine[], invoiced: readonly BreakdownSums[]): BreakdownLine[] {
  const missing = combined(getSums(invoiced), getSums(used), (sum, other) => sum - other)
  const isWhole = Object.values(missing).every(value => value === 0)
  const correction = { kind: 'correction', id: null, name: null, ...missing } as const
  return [...used, ...(isWhole ? [] : [correction])].sort(
    (breakdownLine, other) =>
      breakdownKinds.indexOf(breakdownLine.kind) - breakdownKinds.indexOf(other.kind) ||
      other.amountMicrocents - breakdownLine.amountMicrocents,
  )
}

const sumNames = [
  'requests',
  'inputTokens',
  'cachedInputTokens',
  'outputTokens',
  'reasoningTokens',
  'amountMicrocents',
] as const satisfies readonly (keyof BreakdownSums)[]

/** Each sum is below 2^53, as an invoice's total is. */
function getSums(lines: readonly BreakdownSums[]): BreakdownSums {
  return lines.reduce((sums, line) => combined(sums, line, (sum, other) => sum + other), all(0, sumNames))
}

function combined(
  left: BreakdownSums,
  right: BreakdownSums,
  combine: (value: number, other: number) => number,
): BreakdownSums {
  return fromNames(sumNames, name => combine(left[name], right[name]))
}
