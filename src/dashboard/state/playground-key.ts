import { callApi } from './api.ts'
import { freshToken } from './session.ts'

const lifetimeMs = 3_600_000
const renewBeforeMs = 60_000

type PlaygroundKey = {
  /** Returns a key that is valid for at least a minute. */
  take(): Promise<string>
  /** Revokes the key. `isClosing` = the page is closing, so nothing can be awaited. */
  giveBack(isClosing: boolean): void
}

/**
 * The chat endpoints only accept keys, so the playground creates its own: on first use, valid for one hour, kept in
 * memory, and revoked when the page is left. If that fails, the key expires.
 */
export function createPageKey(): PlaygroundKey {
  let held: Promise<{ readonly id: string; readonly key: string; readonly expiresAt: number }> | null = null
  const make = async () => {
    const expiresAt = Date.now() + lifetimeMs
    const body = { name: 'playground', expires_at: new Date(expiresAt).toISOString() }
    const { id, key } = await callApi('POST /api/v1/keys', { body })
    return { id, key, expiresAt }
  }
  return {
    async take() {
      const before = await held?.catch(() => null)
      if (before != null && before.expiresAt - Date.now() > renewBeforeMs) return before.key
      held = make()
      return (await held).key
    },
    giveBack(isClosing) {
      const going = held
      held = null
      void going
        ?.then(async ({ id }) => {
          await fetch(`/api/v1/keys/${id}`, {
            method: 'DELETE',
            headers: { authorization: `Bearer ${await freshToken()}` },
            keepalive: isClosing,
          })
        })
        .catch(() => undefined)
    },
  }
}
