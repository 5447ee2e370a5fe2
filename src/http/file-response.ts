import { asciiName } from '../core/text/safe-name.ts'
import { fixedLimit, GatewayError } from '../core/validation/errors.ts'

/**
 * Returns a download whose text is written by `pieces`. Resolves after the first piece, so that an unavailable database is
 * a 503 and not half a file. The next piece is read only when the client reads; a client disconnect ends `pieces`, and a
 * failure truncates the file, so that half a file never looks complete.
 */
export async function fileResponse(
  pieces: AsyncGenerator<string, void>,
  { type, name }: { readonly type: string; readonly name: string },
): Promise<Response> {
  const encoder = new TextEncoder()
  let piece = await pieces.next()
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          if (piece.done) return controller.close()
          controller.enqueue(encoder.encode(piece.value))
          piece = await pieces.next()
        } catch (cause) {
          controller.error(cause)
        }
      },
      async cancel() {
        await pieces.return()
      },
    },
    { highWaterMark: 0 },
  )
  return new Response(body, {
    headers: {
      'content-type': type,
      'content-disposition': `attachment; filename="${asciiName(name)}"`,
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-store',
    },
  })
}

/** Concurrent exports per account and route: each uses the database as fast as its client reads. */
const maximumExports = 2

export type ExportSlots = {
  /**
   * Takes one slot of the account and returns the function that releases it, to be called once. Throws 429
   * `concurrent_requests_exceeded` if all are taken.
   */
  take(accountId: string): () => void
}

/** Creates the bound on concurrent exports of one route in this process. */
export function createExportSlots(): ExportSlots {
  const running = new Map<string, number>()
  return {
    take(accountId) {
      const taken = running.get(accountId) ?? 0
      if (taken >= maximumExports)
        throw new GatewayError(
          'concurrent_requests_exceeded',
          `Concurrency limit reached: ${maximumExports} exports are running. Retry when one has finished.`,
          { retryAfterMs: 5_000, remedy: fixedLimit },
        )
      running.set(accountId, taken + 1)
      return () => {
        const left = (running.get(accountId) ?? 1) - 1
        if (left === 0) running.delete(accountId)
        else running.set(accountId, left)
      }
    },
  }
}
