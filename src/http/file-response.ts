import { asciiName } from '../core/text/safe-name.ts'

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
