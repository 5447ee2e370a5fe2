/** A small real SMTP server on a loopback port that accepts or rejects emails as a test specifies. */

export type ReceivedLetter = { readonly from: string; readonly to: readonly string[]; readonly text: string }

export type SmtpServer = {
  readonly port: number
  readonly letters: readonly ReceivedLetter[]
  /** Responses to the next recipients instead of `250`. */
  refuseNext(...answers: string[]): void
  stop(): void
}

type Session = { received: string; from: string; to: string[]; isData: boolean }

/** `greeting`: first line; `sender`: response to `MAIL FROM`. */
export function startSmtpServer({ greeting = '220 test', sender = '250 ok' } = {}): SmtpServer {
  const letters: ReceivedLetter[] = []
  const refusals: string[] = []
  const server = Bun.listen<Session>({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      open(socket) {
        socket.data = { received: '', from: '', to: [], isData: false }
        socket.write(`${greeting}\r\n`)
      },
      data(socket, bytes) {
        const session = socket.data
        session.received += bytes.toString('utf8')
        for (;;) {
          const end = session.isData ? session.received.indexOf('\r\n.\r\n') : session.received.indexOf('\r\n')
          if (end === -1) return
          const line = session.received.slice(0, end)
          session.received = session.received.slice(end + (session.isData ? 5 : 2))
          if (session.isData) {
            letters.push({ from: session.from, to: session.to, text: decoded(line) })
            Object.assign(session, { isData: false, to: [] })
            socket.write('250 taken\r\n')
          } else if (/^(EHLO|HELO)/i.test(line)) socket.write('250 test\r\n')
          else if (/^MAIL FROM:/i.test(line)) {
            session.from = addressIn(line)
            socket.write(`${sender}\r\n`)
          } else if (/^RCPT TO:/i.test(line)) {
            const refusal = refusals.shift()
            if (refusal === undefined) session.to.push(addressIn(line))
            socket.write(`${refusal ?? '250 ok'}\r\n`)
          } else if (/^DATA/i.test(line)) {
            session.isData = true
            socket.write('354 go on\r\n')
          } else if (/^QUIT/i.test(line)) socket.end('221 bye\r\n')
          else socket.write('250 ok\r\n')
        }
      },
    },
  })
  return {
    port: server.port,
    letters,
    refuseNext: (...answers) => void refusals.push(...answers),
    stop: () => server.stop(true),
  }
}

const addressIn = (line: string) => /<([^>]*)>/.exec(line)?.[1] ?? ''

/** Decodes quoted-printable: long lines are broken with `=`, and other characters than ASCII are in hex. */
function decoded(message: string): string {
  const bytes = message
    .replace(/=\r\n/g, '')
    .replace(/=([0-9A-F]{2})/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)))
  return Buffer.from(bytes, 'latin1').toString('utf8')
}
