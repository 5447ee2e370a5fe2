/** Invoices of an account: the list, one invoice with its lines, and the payment page of an unpaid one. */

import { Type } from '@sinclair/typebox'
import { tagNamePattern } from '../../core/request/tags.ts'
import { type Cell, csvLine } from '../../core/text/csv.ts'
import { decimalUsd, toUsd } from '../../core/usage/money.ts'
import { invalidField, oneOf, strictObject } from '../../core/validation/validate.ts'
import type { Database } from '../../database/database.ts'
import { fileResponse } from '../../http/file-response.ts'
import {
  emptyBody,
  notFound,
  readInput,
  readQuery,
  reply,
  type SessionRequest,
  type SessionRoute,
} from '../../http/session-routes.ts'
import { type CardDeps, openInvoicePage } from './cards.ts'
import {
  type BreakdownLine,
  breakdownDimensions,
  invoiceBreakdownShape,
  invoiceListShape,
  invoiceWithLinesShape,
  pageShape,
  type ShownBreakdown,
} from './schemas.ts'
import { shownInvoice, shownLine, shownSums } from './serializers.ts'
import { breakDownInvoice } from './stores/invoice-breakdown.ts'
import { findInvoice, listInvoices } from './stores/invoices.ts'

export type InvoiceDeps = CardDeps & BreakdownDeps

/** Routes under `/api/v1/billing/invoices`. */
export function invoiceRoutes(deps: InvoiceDeps): readonly SessionRoute[] {
  return [
    {
      method: 'GET',
      path: '/api/v1/billing/invoices',
      action: 'billing.see',
      summary: 'List invoices, newest first',
      answer: invoiceListShape,
      async handle({ principal }) {
        const found = await listInvoices(deps.database, principal.accountId)
        return reply({ data: found.map(shownInvoice) })
      },
    },
    {
      method: 'GET',
      path: '/api/v1/billing/invoices/:id',
      action: 'billing.see',
      summary: 'Get an invoice with its lines per model',
      answer: invoiceWithLinesShape,
      async handle({ principal, params }) {
        const found = await findInvoice(deps.database, principal.accountId, params.id ?? '')
        if (found === null) throw notFound()
        return reply({ ...shownInvoice(found), lines: found.lines.map(shownLine) })
      },
    },
    breakdownRoute(deps),
    {
      method: 'POST',
      path: '/api/v1/billing/invoices/:id/payment-page',
      action: 'billing.change',
      summary: 'Create a payment page for an unpaid invoice',
      description:
        'For a declined card, or a payment that the bank must confirm. 404 if no payment processor is configured.',
      body: emptyBody,
      bodyRequired: false,
      examples: { 'unpaid invoice': {} },
      answer: pageShape,
      errors: ['not_found', 'conflict'],
      async handle({ principal, params, request }) {
        await readInput(request, emptyBody)
        const found = await findInvoice(deps.database, principal.accountId, params.id ?? '')
        if (found === null) throw notFound()
        return reply({ url: await openInvoicePage(deps, found.invoice) })
      },
    },
  ]
}

/** An invoice by key, tag, member, model or dialect, as JSON or CSV. Its lines add up to the invoice exactly. */

type BreakdownDeps = { readonly database: Database }

const querySchema = strictObject({
  by: oneOf(breakdownDimensions),
  tag: Type.Optional(
    Type.String({ pattern: tagNamePattern, maxLength: 32, description: 'required by tag: the name of one tag' }),
  ),
  format: Type.Optional(oneOf(['csv', 'json'])),
})

type ShownLine = ShownBreakdown['lines'][number]

/** `GET /api/v1/billing/invoices/{id}/breakdown`. */
function breakdownRoute(deps: BreakdownDeps): SessionRoute {
  return {
    method: 'GET',
    path: '/api/v1/billing/invoices/:id/breakdown',
    action: 'billing.see',
    summary: 'Get an invoice by key, tag, member, model or dialect',
    description:
      'The lines add up to the total of the invoice exactly. By tag, `tag` names one tag: a request has one value of it, so none counts twice.',
    query: querySchema,
    answer: invoiceBreakdownShape,
    alsoAs: { 'text/csv': Type.String({ description: 'one line per line of the breakdown' }) },
    errors: ['not_found'],
    handle: call => breakDown(deps, call),
  }
}

async function breakDown({ database }: BreakdownDeps, call: SessionRequest): Promise<Response> {
  const { by, tag, format } = readBreakdownQuery(call.request.url)
  const invoiceId = call.params.id ?? ''
  const found = await breakDownInvoice(database, {
    accountId: call.principal.accountId,
    invoiceId,
    by,
    tagName: tag,
  })
  if (found === null) throw notFound()
  if (format === 'json') return reply({ invoice_id: invoiceId, by, tag, lines: found.map(shownBreakdownLine) })
  return fileResponse(getCsv(found), {
    type: 'text/csv; charset=utf-8',
    name: `invoice-${invoiceId}-by-${tag ?? by}.csv`,
  })
}

function readBreakdownQuery(url: string) {
  const { by, tag = null, format = 'json' } = readQuery(url, querySchema)
  if (by === 'tag' && tag === null) throw invalidField('tag', 'must be the name of one tag')
  if (by !== 'tag' && tag !== null) throw invalidField('tag', 'requires `by` to be `tag`')
  return { by, tag, format }
}

function shownBreakdownLine(line: BreakdownLine): ShownLine {
  return { kind: line.kind, id: line.id, name: line.name, ...shownSums(line) }
}

const columns = [
  'kind',
  'id',
  'name',
  'requests',
  'input_tokens',
  'cached_input_tokens',
  'output_tokens',
  'reasoning_tokens',
  'cost_usd',
] as const satisfies readonly (keyof ShownLine)[]

async function* getCsv(lines: readonly BreakdownLine[]): AsyncGenerator<string, void> {
  yield csvLine(columns)
  for (const line of lines) {
    const { amountMicrocents } = line
    // Text that begins with a minus could be a formula, and a number could not.
    const cost = amountMicrocents < 0 ? toUsd(amountMicrocents) : decimalUsd(amountMicrocents)
    const shown: Readonly<Record<string, Cell>> = { ...shownBreakdownLine(line), cost_usd: cost }
    yield csvLine(columns.map(column => shown[column] ?? null))
  }
}
