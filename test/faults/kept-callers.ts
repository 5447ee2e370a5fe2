/** Callers who keep their connections open, as HTTP/1.1 clients do: they leave one only when an answer says so. */
import { connect, type Socket } from 'node:net'

export type Asked = {
  readonly answered: number
  /** What else came of requests, and how often: a status, or a connection that was cut. */
  readonly failed: Readonly<Record<string, number>>
}

export type Callers = {
  /** Requests that were answered so far. */
  answered(): number
  /** No further request is sent. Resolves when all are answered. */
  stop(): Promise<Asked>
}

export type CallersOptions = {
  readonly url: string
  readonly key: string
  readonly callers: number
  /** Between an answer and the next request, at most. */
  readonly pauseMs: number
}

/** Starts callers, each with one connection at a time. A request is sent once: nothing is tried again. */
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

/** Sends a request and resolves with the answer's head once all of it is there. */
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
