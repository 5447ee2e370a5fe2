import { call } from './api.ts'
import { freshToken } from './session.ts'

const lifetimeMs = 3_600_000
const renewBeforeMs = 60_000

export type PlaygroundKey = {
  /** A key that is good for the next minute. */
  take(): Promise<string>
  /** Revokes it. `isClosing`: the page itself is going, and nothing can be awaited. */
  giveBack(isClosing: boolean): void
}

/**
 * The chat endpoints take keys alone, so a page that chats has one of its own: made when it is first needed, good for an hour,
 * held in memory, revoked when the page is left. Should even that fail, it ends by itself.
 */
export function createPageKey(): PlaygroundKey {
  let held: Promise<{ readonly id: string; readonly key: string; readonly expiresAt: number }> | null = null
  const make = async () => {
    const expiresAt = Date.now() + lifetimeMs
    const body = { name: 'playground', expires_at: new Date(expiresAt).toISOString() }
    const { id, key } = await call('POST /api/v1/keys', { body })
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
