/**
 * The signed-in session.
 *
 * The session token is only in memory; the refresh token is in this tab's `sessionStorage`, so that a reload does not
 * sign out. A cookie would be sent automatically and need a route that checks origins; `__Host-` cookies need TLS,
 * which a private gateway may not have. It would not stop the relevant attack either: a script that bypasses the policy
 * (`script-src 'self'`) could act through the page. `sessionStorage` ends with the tab, and a stolen token works once:
 * tokens rotate, and reuse ends the session.
 *
 * Tabs share one session: a new tab asks the others, and a refresh is broadcast, so that no token is used twice.
 */
import { computed, signal } from '@preact/signals'
import { type Action, isAllowed } from '../../core/accounts/roles.ts'
import type { ShownSignIn } from '../../http/schemas.ts'
import { asFailure, RequestError, readRequestError } from './api-error.ts'
import { accountCreatedAt } from './href.ts'

const storageKey = 'gateway-ai.refresh'
/** A token is refreshed this long before it expires, so that no request is sent with one that expires in transit. */
const renewBeforeMs = 60_000
const otherTabsMs = 120

type TabMessage =
  | { readonly type: 'anyone' }
  | { readonly type: 'session'; readonly session: ShownSignIn }
  | { readonly type: 'ended'; readonly userId: string }

/** Undefined while unknown. */
export const currentSession = signal<ShownSignIn | null | undefined>(undefined)
export const user = computed(() => currentSession.value?.user ?? null)
export const currentAccount = computed(() => currentSession.value?.account ?? null)
/** Returns true if the role of the user in the account allows the action. */
export const may = (action: Action) => isAllowed(user.value?.role ?? 'viewer', action)
/** Why a signed-in user sees the sign-in page. */
export const endedBecause = signal<string | null>(null)

const tabs = new BroadcastChannel('gateway-ai')
let renewing: Promise<string> | null = null

tabs.addEventListener('message', ({ data }: MessageEvent<TabMessage>) => {
  const current = currentSession.peek()
  switch (data.type) {
    case 'anyone':
      if (current) tell({ type: 'session', session: current })
      break
    case 'session':
      // A tab of another user keeps its session, and the sign-in page stays.
      if (current === undefined || current?.user.id === data.session.user.id) adopt(data.session)
      break
    case 'ended':
      if (current?.user.id === data.userId) adopt(null)
      break
  }
})

const tell = (message: TabMessage) => tabs.postMessage(message)

/** Resumes the session of this tab, or of another one. Throws `RequestError` if the gateway is unreachable. */
export async function resume(): Promise<void> {
  if (sessionStorage.getItem(storageKey) === null) {
    tell({ type: 'anyone' })
    await new Promise(resolve => setTimeout(resolve, otherTabsMs))
  } else {
    await renew().catch(thrown => {
      if (asFailure(thrown).status !== 401) throw asFailure(thrown)
    })
  }
  if (currentSession.peek() === undefined) currentSession.value = null
}

/** Signs in, in this tab and in those that wait for it. */
export function begin(started: ShownSignIn): void {
  endedBecause.value = null
  adopt(started)
  tell({ type: 'session', session: started })
}

/** Signs out, in every tab. */
export function end(because: string | null = null): void {
  const userId = user.peek()?.id
  endedBecause.value = because
  adopt(null)
  if (userId !== undefined) tell({ type: 'ended', userId })
}

function adopt(next: ShownSignIn | null): void {
  if (next === null) sessionStorage.removeItem(storageKey)
  else sessionStorage.setItem(storageKey, next.refresh_token)
  accountCreatedAt.value = next === null ? 0 : Date.parse(next.account.created_at)
  currentSession.value = next
}

/** Returns a token that is valid for at least a minute. */
export async function freshToken(): Promise<string> {
  const current = currentSession.peek()
  if (current && Date.parse(current.expires_at) - Date.now() > renewBeforeMs) return current.token
  return renew()
}

/** Refreshes the session once for all concurrent callers. Ends it if the API rejects it. */
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
  if (response.status !== 401) throw await readRequestError(response)
  end('Your session has ended. Sign in again.')
  throw ended()
}

function ended(): RequestError {
  return new RequestError({ status: 401, code: 'invalid_token', message: 'Your session has ended. Sign in again.' })
}
