/**
 * Who is signed in.
 *
 * The session token is held in memory alone; the refresh token in this tab's `sessionStorage`, so that a reload does not
 * sign out. Not in a cookie: a cookie would travel by itself, needing a route of its own that checks origins, and
 * `__Host-` cookies need TLS, which a gateway on a private network may not have; and it would not help where it counts,
 * since a script that got past the policy (`script-src 'self'`, no inline, nothing foreign) could act through the page
 * either way. `sessionStorage` ends with the tab, is nobody else's, and what is taken from it works once: the token rotates,
 * and the use of an old one ends the session.
 *
 * Tabs share one session: one that opens asks the others, and who renews tells them, so that none uses a token twice.
 */
import { computed, signal } from '@preact/signals'
import type { ShownSignIn } from '../../http/schemas.ts'
import { asFailure, failureOf, RequestError } from './api-error.ts'

const storageKey = 'gateway-ai.refresh'
/** Before a token runs out it is renewed, so that no request is sent with one that ends on the way. */
const renewBeforeMs = 60_000
const otherTabsMs = 120

type TabMessage =
  | { readonly type: 'anyone' }
  | { readonly type: 'session'; readonly session: ShownSignIn }
  | { readonly type: 'ended'; readonly userId: string }

/** Undefined until it is known whether somebody is. */
export const session = signal<ShownSignIn | null | undefined>(undefined)
export const user = computed(() => session.value?.user ?? null)
export const account = computed(() => session.value?.account ?? null)
/** Why the sign-in page is shown to somebody who was signed in. */
export const endedBecause = signal<string | null>(null)

const tabs = new BroadcastChannel('gateway-ai')
let renewing: Promise<string> | null = null

tabs.addEventListener('message', ({ data }: MessageEvent<TabMessage>) => {
  const current = session.peek()
  switch (data.type) {
    case 'anyone':
      if (current) tell({ type: 'session', session: current })
      break
    case 'session':
      // A tab of somebody else's stays theirs, and one at the sign-in page where it is.
      if (current === undefined || current?.user.id === data.session.user.id) adopt(data.session)
      break
    case 'ended':
      if (current?.user.id === data.userId) adopt(null)
      break
  }
})

const tell = (message: TabMessage) => tabs.postMessage(message)

/** Takes up the session of this tab, or of another one. Throws `Failure` where the gateway cannot be asked. */
export async function resume(): Promise<void> {
  if (sessionStorage.getItem(storageKey) === null) {
    tell({ type: 'anyone' })
    await new Promise(resolve => setTimeout(resolve, otherTabsMs))
  } else {
    await renew().catch(thrown => {
      if (asFailure(thrown).status !== 401) throw asFailure(thrown)
    })
  }
  if (session.peek() === undefined) session.value = null
}

/** Signed in, in this tab and in those that wait for it. */
export function begin(started: ShownSignIn): void {
  endedBecause.value = null
  adopt(started)
  tell({ type: 'session', session: started })
}

/** Signed out, in every tab. */
export function end(because: string | null = null): void {
  const userId = user.peek()?.id
  endedBecause.value = because
  adopt(null)
  if (userId !== undefined) tell({ type: 'ended', userId })
}

function adopt(next: ShownSignIn | null): void {
  if (next === null) sessionStorage.removeItem(storageKey)
  else sessionStorage.setItem(storageKey, next.refresh_token)
  session.value = next
}

/** A token that is good for the next minute. */
export async function freshToken(): Promise<string> {
  const current = session.peek()
  if (current && Date.parse(current.expires_at) - Date.now() > renewBeforeMs) return current.token
  return renew()
}

/** Renews the session once, however many ask. Ends it where the API says that it is over. */
export function renew(): Promise<string> {
  renewing ??= rotate().finally(() => {
    renewing = null
  })
  return renewing
}

async function rotate(): Promise<string> {
  const refreshToken = sessionStorage.getItem(storageKey)
  if (refreshToken === null) throw ended()
  const response = await fetch('/api/v1/auth/refresh', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ refresh_token: refreshToken }),
  })
  if (response.ok) {
    const renewed: ShownSignIn = await response.json()
    begin(renewed)
    return renewed.token
  }
  if (response.status !== 401) throw await failureOf(response)
  end('Your session has ended. Sign in again.')
  throw ended()
}

function ended(): RequestError {
  return new RequestError({ status: 401, code: 'invalid_token', message: 'Your session has ended. Sign in again.' })
}
