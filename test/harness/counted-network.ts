/** The network with a count of upstream responses: nothing else shows a JSON client that content has arrived. */

import type { Network } from '../../src/core/ports.ts'
import { systemNetwork } from '../../src/web/network.ts'

/** `arrived` counts the responses of upstreams whose status the gateway has read, the bytes of their bodies, and the complete bodies. */
export function countedNetwork() {
  const arrived = { responses: 0, complete: 0, bytes: 0 }
  const network: Network = {
    ...systemNetwork,
    async fetch(url, init) {
      const response = await systemNetwork.fetch(url, init)
      arrived.responses++
      const counted = new TransformStream<Uint8Array, Uint8Array>({
        transform(bytes, out) {
          out.enqueue(bytes)
          arrived.bytes += bytes.byteLength
        },
        flush() {
          arrived.complete++
        },
      })
      return new Response(response.body?.pipeThrough(counted) ?? null, response)
    },
  }
  return { network, arrived }
}
