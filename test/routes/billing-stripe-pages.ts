/** The two pages of the simulated Stripe: for entering a card, and for paying an invoice. */
import type { StripeServer } from './billing-stripe.ts'

/** Returns the page at a path; null = the path is of the API. */
export function stripePage(stripe: StripeServer, method: string, path: string): Response | null {
  const [, kind = '', first = '', second = ''] = path.split('/')
  if (kind === 'c' && first === 'pay') return setupPage(stripe, method, second)
  return kind === 'i' ? invoicePage(stripe, method, first) : null
}

function setupPage(stripe: StripeServer, method: string, id: string): Response {
  const session = stripe.sessions.get(id)
  if (session === undefined) return missing()
  if (method === 'POST') {
    stripe.enterCard(id)
    return Response.redirect(session.success_url.replaceAll('{CHECKOUT_SESSION_ID}', id), 303)
  }
  const field = '<label>Card number <input name="number"></label>'
  const form = `<form method="post">${field}<button>Save card</button></form>`
  return html('Save a card', `${form}<a href="${session.cancel_url}">Back</a>`)
}

function invoicePage(stripe: StripeServer, method: string, id: string): Response {
  const invoice = stripe.invoices.get(id)
  if (invoice === undefined) return missing()
  if (method === 'POST') stripe.payInvoice(id)
  const form = '<form method="post"><button>Pay</button></form>'
  return html(invoice.status === 'paid' ? 'Invoice paid' : 'Pay invoice', form)
}

function html(title: string, body: string): Response {
  return new Response(`<!doctype html><html lang="en"><title>${title}</title><h1>${title}</h1>${body}</html>`, {
    headers: { 'content-type': 'text/html' },
  })
}

const missing = () => new Response('no such page', { status: 404 })
