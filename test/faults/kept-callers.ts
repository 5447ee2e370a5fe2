/** Clients that keep their connections open like HTTP/1.1 clients: they close one only when a response requests it. */
import { connect, type Socket } from 'node:net'

export type Asked = {
  readonly answered: number
  /** Other results of requests with their counts: a status, or a broken connection. */
  readonly failed: Readonly<Record<string, number>>
  /** Milliseconds of each response, by status. */
  readonly times: Readonly<Record<string, readonly number[]>>
}

export type Callers = {
  /** Number of responses so far. */
  answered(): number
  /** Sends no further request. Resolves when all are answered. */
  stop(): Promise<Asked>
}

export type CallersOptions = {
  readonly url: string
  readonly key: string
  readonly callers: number
  /** Returns the pause between a response with this status, or a broken connection, and the next request. */
  readonly pauseMs: (status: string | null) => number
  readonly path?: string
  readonly body?: () => string
}

const usualBody = JSON.stringify({ model: 'gateway-ai', prompt: 'hello', max_output_tokens: 16 })

/** Returns pauses of any length up to this one. */
export const anyPause = (mostMs: number) => () => Math.random() * mostMs

/** Starts clients with one connection each. A request is sent once, without retries. */
export function startCallers(options: CallersOptions): Callers {
  const { url, key, callers, pauseMs, path = '/api/v1/chat', body = () => usualBody } = options
  const { port, hostname } = new URL(url)
  const head = `POST ${path} HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\nContent-Length: `
  const request = () => {
    const text = body()
    return `${head}${Buffer.byteLength(text)}\r\n\r\n${text}`
  }
  const failed: Record<string, number> = {}
  const times: Record<string, number[]> = {}
  let answered = 0
  let isOver = false

  const callOn = async () => {
    let socket: Socket | null = null
    while (!isOver) {
      let status: string | null = null
      try {
        socket ??= await dial(Number(port), hostname)
        const sentAt = performance.now()
        const head = await exchange(socket, request())
        status = head.slice(9, 12)
        const ofStatus = times[status] ?? []
        times[status] = ofStatus
        ofStatus.push(performance.now() - sentAt)
        if (status === '200') answered++
        else failed[status] = (failed[status] ?? 0) + 1
        if (/\r\nconnection: close/i.test(head)) socket = left(socket)
      } catch (cause) {
        const reason = cause instanceof Error ? cause.message : String(cause)
        failed[reason] = (failed[reason] ?? 0) + 1
        socket = left(socket)
      }
      const waitMs = pauseMs(status)
      if (waitMs > 0 && !isOver) await Bun.sleep(waitMs)
    }
    left(socket)
  }
  const all = Array.from({ length: callers }, callOn)
  return {
    answered: () => answered,
    async stop() {
      isOver = true
      await Promise.all(all)
      return { answered, failed, times }
    },
  }
}

function left(socket: Socket | null): null {
  socket?.destroy()
  return null
}

function dial(port: number, host: string): Promise<Socket> {
  return new Promise((done, fail) => {
    const socket = connect(port, host)
    const refuse = (cause: Error) => fail(new Error(`not connected: ${cause.message}`))
    socket.once('error', refuse)
    socket.once('connect', () => {
      socket.off('error', refuse)
      socket.on('error', () => {})
      done(socket)
    })
  })
}

/** Sends a request and resolves with the response's head when it is complete. */
function exchange(socket: Socket, request: string): Promise<string> {
  return new Promise((done, fail) => {
    let text = ''
    const end = () => {
      socket.off('data', read)
      socket.off('close', cut)
    }
    const cut = () => {
      end()
      fail(new Error(text === '' ? 'cut before the answer' : 'cut within the answer'))
    }
    const read = (piece: Buffer) => {
      text += piece.toString('latin1')
      const headEnd = text.indexOf('\r\n\r\n')
      if (headEnd === -1) return
      const head = text.slice(0, headEnd)
      const length = Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1])
      if (text.length - headEnd - 4 < length) return
      end()
      done(head)
    }
    if (socket.destroyed) return fail(new Error('cut while it was idle'))
    socket.on('data', read)
    socket.on('close', cut)
    socket.write(request)
  })
}
