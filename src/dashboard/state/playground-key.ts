import { callApi } from './api.ts'
import { freshToken } from './session.ts'

const lifetimeMs = 3_600_000
const renewBeforeMs = 60_000

type PlaygroundKey = {
  /** Returns a key that is valid for at least a minute: the same for concurrent callers. */
  take(): Promise<string>
  /** Revokes the key; resolves when that is done or has failed. `isClosing` = the page is closing, so nothing can be awaited. */
  giveBack(isClosing: boolean): Promise<void>
}

type HeldKey = { readonly expiresAt: number; readonly made: Promise<{ readonly id: string; readonly key: string }> }

/**
 * The chat endpoints only accept keys, so the playground creates its own: on first use, valid for one hour, kept in
 * memory, and revoked when the page is left. If that fails, the key expires.
 */
export function createPageKey(): PlaygroundKey {
  let held: HeldKey | null = null
  const make = (): HeldKey => {
    const expiresAt = Date.now() + lifetimeMs
    const body = { name: 'playground', expires_at: new Date(expiresAt).toISOString() }
    const own = { expiresAt, made: callApi('POST /api/v1/keys', { body }) }
    own.made.catch(() => {
      if (held === own) held = null
    })
    return own
  }
  return {
    async take() {
      // Decided without waiting: otherwise each of several conversations would create a key, and only the last one be revoked.
      if (held === null || held.expiresAt - Date.now() < renewBeforeMs) held = make()
      return (await held.made).key
    },
    async giveBack(isClosing) {
      const going = held
      held = null
      if (going === null) return
      try {
        const { id } = await going.made
        await fetch(`/api/v1/keys/${id}`, {
          method: 'DELETE',
          headers: { authorization: `Bearer ${await freshToken()}` },
          keepalive: isClosing,
        })
      } catch {
        // The key expires.
      }
    },
  }
}
