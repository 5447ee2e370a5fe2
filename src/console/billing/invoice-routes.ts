/** Invoices of an account: the list, one invoice with its lines, and the payment page of an unpaid one. */
import { Type } from '@sinclair/typebox'
import { checker } from '../../core/validation/validate.ts'
import { notFound, readInput, reply, type SessionRoute } from '../../http/session-routes.ts'
import { type CardDeps, openInvoicePage } from './cards.ts'
import { type BreakdownDeps, breakdownRoute } from './invoice-breakdown.ts'
import { invoiceListShape, invoiceWithLinesShape, pageShape } from './schemas.ts'
import { shownInvoice, shownLine } from './serializers.ts'
import { findInvoice, listInvoices } from './stores/invoices.ts'

export type InvoiceDeps = CardDeps & BreakdownDeps

const emptySchema = Type.Object({}, { additionalProperties: false })
const checkEmpty = checker(emptySchema)

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
      body: emptySchema,
      bodyRequired: false,
      examples: { 'unpaid invoice': {} },
      answer: pageShape,
      errors: ['not_found', 'conflict'],
      async handle({ principal, params, request }) {
        await readInput(request, checkEmpty)
        const found = await findInvoice(deps.database, principal.accountId, params.id ?? '')
        if (found === null) throw notFound()
        return reply({ url: await openInvoicePage(deps, found.invoice) })
      },
    },
  ]
}
