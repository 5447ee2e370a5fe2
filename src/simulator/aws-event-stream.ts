/** Writes messages of AWS's event stream. */
import { crc32 } from 'node:zlib'

type Message = { readonly headers: Readonly<Record<string, string>>; readonly payload: Uint8Array | string }

/** Returns the bytes of one message; all headers are strings. */
export function awsMessage({ headers, payload }: Message): Uint8Array {
  const head = Buffer.concat(
    Object.entries(headers).map(([name, value]) => {
      const bytes = Buffer.from(value)
      const length = Buffer.alloc(2)
      length.writeUInt16BE(bytes.length)
      return Buffer.concat([Buffer.from([name.length]), Buffer.from(name), Buffer.from([7]), length, bytes])
    }),
  )
  const body = Buffer.from(payload)
  const prelude = Buffer.alloc(8)
  prelude.writeUInt32BE(16 + head.length + body.length)
  prelude.writeUInt32BE(head.length, 4)
  const message = Buffer.concat([prelude, checksum(prelude), head, body])
  return Buffer.concat([message, checksum(message)])
}

function checksum(bytes: Uint8Array): Buffer {
  const sum = Buffer.alloc(4)
  sum.writeUInt32BE(crc32(bytes))
  return sum
}
