/** Invoices of an account: the list, one invoice with its lines, and the payment page of an unpaid one. */

import { Type } from '@sinclair/typebox'
import { tagNamePattern } from '../../core/request/tags.ts'
import { type Cell, csvLine } from '../../core/text/csv.ts'
import { decimalUsd } from '../../core/usage/money.ts'
import { invalidField, oneOf, strictObject } from '../../core/validation/validate.ts'
import { fileResponse } from '../../http/file-response.ts'
import type { ConsoleDeps } from '../deps.ts'
import { emptyBody, notFound, type SessionRequest, type SessionRoute, sessionRoute } from '../routes.ts'
import { readQuery } from '../usage/query.ts'
import { openInvoicePage } from './cards.ts'
import {
  type BreakdownLine,
  breakdownDimensions,
  invoiceBreakdownShape,
  invoiceListShape,
  invoiceWithLinesShape,
  pageShape,
  type ShownBreakdown,
  shownSums,
} from './schemas.ts'
import { shownInvoice, shownLine } from './serializers.ts'
import { breakDownInvoice } from './stores/invoice-breakdown.ts'
import { findInvoice, listInvoices } from './stores/invoices.ts'

/** Routes under `/api/v1/billing/invoices`. */
export function invoiceRoutes(deps: ConsoleDeps): readonly SessionRoute[] {
  return [
    sessionRoute({
      route: 'GET /api/v1/billing/invoices',
      action: 'billing.see',
      summary: 'List invoices, newest first',
      answer: invoiceListShape,
      async handle({ principal, database }) {
        const found = await listInvoices(database, principal.accountId)
        return { data: found.map(shownInvoice) }
      },
    }),
    sessionRoute({
      route: 'GET /api/v1/billing/invoices/:id',
      action: 'billing.see',
      summary: 'Get an invoice with its lines per model',
      answer: invoiceWithLinesShape,
      async handle({ principal, id, database }) {
        const found = await findInvoice(database, principal.accountId, id)
        if (found === null) throw notFound()
        return { ...shownInvoice(found), lines: found.lines.map(shownLine) }
      },
    }),
    breakdownRoute,
    sessionRoute({
      route: 'POST /api/v1/billing/invoices/:id/payment-page',
      action: 'billing.change',
      summary: 'Create a payment page for an unpaid invoice',
      description:
        'For a declined card, or a payment that the bank must confirm. 404 if no payment processor is configured.',
      ...emptyBody,
      answer: pageShape,
      errors: ['not_found', 'conflict'],
      async handle({ principal, id, database }) {
        const found = await findInvoice(database, principal.accountId, id)
        if (found === null) throw notFound()
        return { url: await openInvoicePage(deps, found.invoice) }
      },
    }),
  ]
}

/** An invoice by key, tag, member, model or dialect, as JSON or CSV. Its lines add up to the invoice exactly. */

const querySchema = strictObject({
  by: oneOf(breakdownDimensions),
  tag: Type.Optional(
    Type.String({ pattern: tagNamePattern, maxLength: 32, description: 'required by tag: the name of one tag' }),
  ),
  format: Type.Optional(oneOf(['csv', 'json'])),
})

type ShownLine = ShownBreakdown['lines'][number]

/** `GET /api/v1/billing/invoices/{id}/breakdown`. */
const breakdownRoute = sessionRoute({
  route: 'GET /api/v1/billing/invoices/:id/breakdown',
  action: 'billing.see',
  summary: 'Get an invoice by key, tag, member, model or dialect',
  description:
    'The lines add up to the total of the invoice exactly. By tag, `tag` names one tag: a request has one value of it, so none counts twice.',
  query: querySchema,
  answer: invoiceBreakdownShape,
  alsoAs: { 'text/csv': Type.String({ description: 'one line per line of the breakdown' }) },
  errors: ['not_found'],
  handle: breakDown,
})

async function breakDown({ principal: { accountId }, id: invoiceId, request, database }: SessionRequest) {
  const { by, tag, format } = readBreakdownQuery(request.url)
  const found = await breakDownInvoice(database, { accountId, invoiceId, by, tagName: tag })
  if (found === null) throw notFound()
  if (format === 'json') return { invoice_id: invoiceId, by, tag, lines: found.map(shownBreakdownLine) }
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

const columns = Object.keys(invoiceBreakdownShape.properties.lines.items.properties)

async function* getCsv(lines: readonly BreakdownLine[]): AsyncGenerator<string, void> {
  yield csvLine(columns)
  for (const line of lines) {
    const shown: Readonly<Record<string, Cell>> = {
      ...shownBreakdownLine(line),
      cost_usd: decimalUsd(line.amountMicrocents),
    }
    yield csvLine(columns.map(column => shown[column] ?? null))
  }
}
