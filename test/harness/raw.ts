/** Sends requests byte by byte: requests that no client library would send, and all ways to disconnect. */

import { connect, type Socket } from 'node:net'
import { patienceMs } from './patience.ts'

export type RawAnswer = { readonly status: number; readonly headers: Headers; readonly body: string }

/** Returns `GET /path` or `POST /path` with the given headers, ready to be written. */
export function rawText(start: string, headers: Readonly<Record<string, string>>, body = ''): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  return `${start} HTTP/1.1\r\n${lines.join('')}\r\n${body}`
}

/** Opens a connection and writes; `received` grows with the response. */
export async function openRaw(port: number, text: string): Promise<{ readonly socket: Socket; received(): string }> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  let received = ''
  socket.on('data', bytes => {
    received += bytes.toString('latin1')
  })
  socket.on('error', () => undefined)
  await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject))
  socket.write(text)
  return { socket, received: () => received }
}

/** Sends one request with `connection: close` and reads the response to its end; null = none arrived. */
export async function exchangeRaw(port: number, text: string, withinMs = patienceMs): Promise<RawAnswer | null> {
  const { socket, received } = await openRaw(port, text)
  const timer = setTimeout(() => socket.destroy(), withinMs)
  await new Promise(resolve => socket.once('close', resolve).once('end', resolve))
  clearTimeout(timer)
  socket.destroy()
  return parseAnswer(received())
}

function parseAnswer(text: string): RawAnswer | null {
  const end = text.indexOf('\r\n\r\n')
  const [statusLine = '', ...lines] = text.slice(0, end).split('\r\n')
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(statusLine)?.[1] ?? 0)
  if (end === -1 || status === 0) return null
  const headers = new Headers()
  for (const line of lines) {
    const colon = line.indexOf(':')
    headers.append(line.slice(0, colon), line.slice(colon + 1).trim())
  }
  return { status, headers, body: text.slice(end + 4) }
}
