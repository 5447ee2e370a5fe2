/** Clients that keep their connections open like HTTP/1.1 clients: they close one only when a response requests it. */
import { connect, type Socket } from 'node:net'

export type Asked = {
  readonly answered: number
  /** Other results of requests with their counts: a status, or a broken connection. */
  readonly failed: Readonly<Record<string, number>>
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
  /** Maximum pause between a response and the next request. */
  readonly pauseMs: number
}

/** Starts clients with one connection each. A request is sent once, without retries. */
export function startCallers({ url, key, callers, pauseMs }: CallersOptions): Callers {
  const { port, hostname } = new URL(url)
  const body = JSON.stringify({ model: 'gateway-ai', prompt: 'hello', max_output_tokens: 16 })
  const request = `POST /api/v1/chat HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  const failed: Record<string, number> = {}
  let answered = 0
  let isOver = false

  const callOn = async () => {
    let socket: Socket | null = null
    while (!isOver) {
      try {
        socket ??= await dial(Number(port), hostname)
        const head = await exchange(socket, request)
        const status = head.slice(9, 12)
        if (status === '200') answered++
        else failed[status] = (failed[status] ?? 0) + 1
        if (/\r\nconnection: close/i.test(head)) socket = left(socket)
      } catch (cause) {
        const reason = cause instanceof Error ? cause.message : String(cause)
        failed[reason] = (failed[reason] ?? 0) + 1
        socket = left(socket)
      }
      if (pauseMs > 0) await Bun.sleep(Math.random() * pauseMs)
    }
    left(socket)
  }
  const all = Array.from({ length: callers }, callOn)
  return {
    answered: () => answered,
    async stop() {
      isOver = true
      await Promise.all(all)
      return { answered, failed }
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
